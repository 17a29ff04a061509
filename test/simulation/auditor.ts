import { createHash } from 'node:crypto';
import type { MemoryConnection } from '../../src/adapters/memory/bus.ts';
import type { Codecs, RecordCodec } from '../../src/contracts/codec.ts';
import { parseDeadLetter } from '../../src/contracts/dead-letter.ts';
import type { Identity, ScoredResult } from '../../src/contracts/records.ts';
import type { TopicNames } from '../../src/contracts/topics.ts';
import { identityKey } from '../../src/core/outcome/identity.ts';
import type { InboundRecord } from '../../src/ports/message-bus.ts';

/** A group with what it reads. */
export interface AuditedGroup {
  group: string;
  topic: string;
  /** The only one that it reads; all where absent. */
  partition?: number;
}

export interface AuditorOptions {
  bus: MemoryConnection;
  codecs: Codecs;
  topics: TopicNames;
  pools: readonly string[];
  groups: readonly AuditedGroup[];
}

/** No part of a request's way takes longer, ms. */
const TIMING_MS_MAX = 600_000;

/**
 * Reads every topic from outside, and knows of each record whether its work is done: what came of it lies on the next topic, or its result
 * does. So it can tell a commit that goes past unfinished work, whoever made it.
 */
export class Auditor {
  /** What was wrong, in words. */
  readonly violations: string[] = [];
  readonly results: ScoredResult[] = [];
  /** When each was answered, ms after its request was on ingress, by the broker's clock. */
  readonly tookMs: number[] = [];
  /**
   * So much longer, ms, may a timing be: a broker whose clock jumps ahead while records wait for a process that has not started cannot be told
   * from one whose records waited that long.
   */
  jumpedAheadMs = 0;
  readonly #options: AuditorOptions;
  readonly #dispatchTopics: readonly string[];
  /** Place of a record → the identity that it is about. */
  readonly #identities = new Map<string, string>();
  readonly #sentMs = new Map<string, number>();
  readonly #extracted = new Set<string>();
  readonly #dispatched = new Set<string>();
  readonly #answered = new Map<string, ScoredResult>();
  readonly #deadLetters = new Set<string>();
  /** By group and partition, up to where its commits were found good: what is done stays so. */
  readonly #goodUntil = new Map<string, number>();
  #term = 0;
  readonly #events = new Set<string>();
  /** Commands that were accepted. */
  readonly #decided = new Set<string>();
  readonly #log = createHash('sha256');

  constructor(options: AuditorOptions) {
    this.#options = options;
    this.#dispatchTopics = options.pools.map((pool) => options.topics.dispatch(pool));
  }

  async start(): Promise<void> {
    const { bus, topics } = this.#options;
    const all = [
      topics.ingress(),
      topics.fixed('features'),
      topics.fixed('scored-results'),
      topics.fixed('control-events'),
      ...this.#dispatchTopics,
    ];
    const deadLetters = [topics.ingress(), topics.fixed('features'), ...this.#dispatchTopics].map((topic) =>
      topics.deadLetter(topic),
    );
    await bus.read({ topics: [...all, ...deadLetters], startAt: 'earliest' }, (records) => {
      for (const record of records) this.#take(record);
    });
  }

  /** Everything that was stored, byte for byte, as one number: the same seed gives the same. */
  digest(): string {
    return this.#log.copy().digest('hex');
  }

  /** Requests without a result, as places on ingress. */
  unanswered(): string[] {
    return [...this.#identities].flatMap(([place, identity]) =>
      place === identity && !this.#answered.has(identity) ? [place] : [],
    );
  }

  /** What the groups have committed by now; the answer holds that against the work that is done when it is called. */
  async commits(): Promise<() => void> {
    const checks: (() => void)[] = [];
    for (const { group, topic } of this.#options.groups) {
      for (const [partition, offset] of await this.#options.bus.admin.committed(group, topic))
        checks.push(() => this.#checkDone(group, topic, partition, offset));
    }
    return () => {
      for (const check of checks) check();
    };
  }

  /** Holds the commits against the ends of the partitions: in the end everything is committed, and who is said to be a dead letter is one. */
  async checkAllCommitted(): Promise<void> {
    for (const [identity, { outcome, requestId }] of this.#answered) {
      if (outcome === 'DEAD_LETTERED' && !this.#deadLetters.has(identity))
        this.violations.push(`${requestId} is answered as a dead letter, and there is none`);
    }
    const { bus, groups } = this.#options;
    for (const { group, topic, partition: only } of groups) {
      const committed = await bus.admin.committed(group, topic);
      for (const { partition, high } of await bus.admin.watermarks(topic)) {
        if (only !== undefined && only !== partition) continue;
        const offset = committed.get(partition) ?? -1;
        if (high > 0 && offset !== high)
          this.violations.push(`${group} has committed ${offset} of ${high} on ${topic}/${partition}`);
      }
    }
  }

  #checkDone(group: string, topic: string, partition: number, committed: number): void {
    const whose = `${group} ${topic}/${partition}`;
    for (let offset = this.#goodUntil.get(whose) ?? 0; offset < committed; offset += 1) {
      const place = identityKey({ topic, partition, offset });
      if (this.#isDone(topic, place)) continue;
      this.violations.push(
        `${group} has committed ${committed} on ${topic}/${partition}; ${place} is not done`,
      );
      return;
    }
    this.#goodUntil.set(whose, Math.max(committed, this.#goodUntil.get(whose) ?? 0));
  }

  #isDone(topic: string, place: string): boolean {
    const { topics } = this.#options;
    const identity = this.#identities.get(place);
    if (identity === undefined) return false;
    const result = this.#answered.get(identity);
    // Who passed a request on is done with it, whatever became of it since.
    if (topic === topics.ingress() && (this.#extracted.has(identity) || this.#dispatched.has(identity)))
      return true;
    if (topic === topics.fixed('features') && this.#dispatched.has(identity)) return true;
    return result?.outcome === 'DEAD_LETTERED' ? this.#deadLetters.has(identity) : result !== undefined;
  }

  #take(record: InboundRecord): void {
    const { topic, partition, offset, timestampMs, key, value } = record;
    this.#log.update(`${topic}/${partition}/${offset} ${timestampMs} ${key?.toString('hex')} `);
    this.#log.update(value ?? 'null');
    const { topics, codecs } = this.#options;
    if (topic.endsWith('.dlq')) this.#takeDeadLetter(record);
    else if (topic === topics.ingress()) this.#takeRequest(record);
    else if (topic === topics.fixed('features'))
      this.#takeStep(record, codecs.for('RoutableRequest'), this.#extracted);
    else if (topic === topics.fixed('scored-results')) this.#takeResult(record);
    else if (topic === topics.fixed('control-events')) this.#takeControlEvent(record);
    else if (this.#dispatchTopics.includes(topic))
      this.#takeStep(record, codecs.for('Dispatch'), this.#dispatched);
  }

  #takeRequest(record: InboundRecord): void {
    const identity = identityKey(record);
    this.#identities.set(identity, identity);
    this.#sentMs.set(identity, record.timestampMs);
  }

  #takeStep<T extends { identity: Identity }>(
    record: InboundRecord,
    codec: RecordCodec<T>,
    done: Set<string>,
  ): void {
    const decoded = codec.decode(record.value);
    if (decoded.status !== 'ok') {
      this.violations.push(`${identityKey(record)} cannot be read`);
      return;
    }
    const identity = identityKey(decoded.value.identity);
    this.#identities.set(identityKey(record), identity);
    done.add(identity);
  }

  #takeResult(record: InboundRecord): void {
    const decoded = this.#options.codecs.for('ScoredResult').decode(record.value);
    if (decoded.status !== 'ok') {
      this.violations.push(`the result ${identityKey(record)} cannot be read`);
      return;
    }
    const result = decoded.value;
    this.results.push(result);
    const identity = identityKey(result.identity);
    this.tookMs.push(record.timestampMs - (this.#sentMs.get(identity) ?? record.timestampMs));
    if (!this.#answered.has(identity)) this.#answered.set(identity, result);
    const odd = Object.entries(result.timings).filter(
      ([, ms]) => !(ms >= 0 && ms < TIMING_MS_MAX + this.jumpedAheadMs),
    );
    if (odd.length > 0) this.violations.push(`${identity} took ${JSON.stringify(odd)}`);
  }

  /** Each command is decided once, and each term taken once; an event that is stored twice is the same event. */
  #takeControlEvent(record: InboundRecord): void {
    const decoded = this.#options.codecs.for('ControlEvent').decode(record.value);
    if (decoded.status !== 'ok') return;
    const { eventId, type, term, commandId, accepted } = decoded.value;
    if (this.#events.has(eventId)) return;
    this.#events.add(eventId);
    if (type === 'leadership-taken' && term <= this.#term)
      this.violations.push(`the term ${term} was taken after ${this.#term}`);
    // What a leader that was replaced still writes counts for nothing.
    if (term < this.#term) return;
    this.#term = term;
    if (commandId === '' || !accepted) return;
    if (this.#decided.has(commandId)) this.violations.push(`${commandId} was decided twice`);
    this.#decided.add(commandId);
  }

  /** The letter names the record that was given up; its identity is that of the request that it is about. */
  #takeDeadLetter(record: InboundRecord): void {
    const letter = parseDeadLetter(record);
    const place = letter === undefined ? '' : identityKey(letter);
    this.#deadLetters.add(this.#identities.get(place) ?? place);
  }
}
