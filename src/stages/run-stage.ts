import type { Decoded, RecordCodec } from '../contracts/codec.ts';
import { passedOn, schemaOf, TRACEPARENT } from '../contracts/headers.ts';
import { type ErrorCode, MillraceError } from '../core/errors.ts';
import type {
  InboundRecord,
  OutboundRecord,
  SubscribeOptions,
  Subscription,
  TopicPartition,
  Unreadable,
} from '../ports/message-bus.ts';
import { SchemaWait } from './schema-wait.ts';
import type { StageDeps } from './stage.ts';

/** A record that was decoded and now belongs to the stage, until it is finished or abandoned. */
export interface Delivery<T> {
  readonly record: InboundRecord;
  readonly value: T;
  /** On the local monotonic clock. */
  readonly receivedAtMs: number;
  /** How long it lay in its topic, ms. */
  readonly inTopicMs: number;
  /** Produces `outputs` and, once the bus has stored them all, acknowledges the record. Exactly one call per delivery. */
  finish(outputs: readonly OutboundRecord[]): void;
  /** Ends the record as a dead letter: its bytes on the dead-letter topic, and a result that says so. */
  deadLetter(code: ErrorCode, message: string): void;
  /** Gives the record up without acknowledging it: its partition went away and the next owner gets it again. */
  abandon(): void;
}

/** What a stage answers for a record that it cannot read or cannot work on. `hash`: the dead letter must do without the record's bytes. */
export type DeadLetters<T> = (
  record: InboundRecord,
  value: T | undefined,
  code: ErrorCode,
  message: string,
  payload?: 'hash',
) => readonly OutboundRecord[];

/** What to do in place of producing refused outputs once more. */
interface Otherwise {
  /** Other outputs in place of those that are too large for their topics. */
  smaller?: (refused: readonly OutboundRecord[], reason: string) => void;
  /** The stage's work once more, where none of its outputs has a place any more: it may choose another. */
  anew?: (() => void) | undefined;
}

export interface StageInput<T> {
  name: string;
  subscription: SubscribeOptions;
  codec: RecordCodec<T>;
  /** Takes the delivery over. A throw is tried again (`tries` in all) and then becomes a dead letter. */
  handle(delivery: Delivery<T>): void;
  deadLetters: DeadLetters<T>;
  /** Partitions go away: abandon the matching deliveries that have not been started. */
  abandon?(gone: (record: InboundRecord) => boolean): void;
  onAssigned?(partitions: readonly TopicPartition[]): void;
  tries: number;
}

export interface RunningStage {
  /** Deliveries taken and not yet finished. */
  inFlight(): number;
  sinceLastFetchMs(): number;
  assigned(): readonly TopicPartition[];
  close(): Promise<void>;
}

const REFUSED_RETRY_MS = 500;

/** The one loop of every stage: decode → admit → run → publish → acknowledge. */
export async function runStage<T>(deps: StageDeps, input: StageInput<T>): Promise<RunningStage> {
  const loop = new StageLoop(deps, input);
  await loop.start();
  return loop;
}

class StageLoop<T> implements RunningStage {
  readonly #deps: StageDeps;
  readonly #input: StageInput<T>;
  /** By topic, then partition. */
  readonly #inFlight = new Map<string, number[]>();
  readonly #drained: (() => void)[] = [];
  readonly #schemaWait: SchemaWait<InboundRecord>;
  /** Acknowledged before the bus had handed out the subscription: it may deliver sooner than that. */
  readonly #acknowledgedEarly: InboundRecord[] = [];
  /** Whose outputs were refused, until they are tried again. */
  readonly #refusals = new Set<{ record: InboundRecord; cancel: () => void }>();
  #total = 0;
  #closed = false;
  #subscription: Subscription | undefined;

  constructor(deps: StageDeps, input: StageInput<T>) {
    this.#deps = deps;
    this.#input = input;
    this.#schemaWait = new SchemaWait(input.name, deps, (record, error) =>
      this.#deadLetter(record, undefined, 'POISON', `failed after its schema was found: ${messageOf(error)}`),
    );
  }

  async start(): Promise<void> {
    const { bus, telemetry } = this.#deps;
    const log = telemetry.logger.child({ stage: this.#input.name });
    const subscription = await bus.subscribe(this.#input.subscription, {
      onRecords: (records) => this.#receiveAll(records),
      onAssigned: (partitions) => this.#input.onAssigned?.(partitions),
      onRevoked: (partitions) => this.#release(partitions),
      onLost: (partitions) => this.#abandon(matching(partitions)),
      onError: (error) => log.warn({ error: String(error) }, 'the bus reported an error; it goes on trying'),
    });
    this.#subscription = subscription;
    for (const record of this.#acknowledgedEarly.splice(0)) subscription.acknowledge(record);
  }

  inFlight(): number {
    return this.#total;
  }

  sinceLastFetchMs(): number {
    return this.#subscription?.sinceLastFetchMs() ?? Number.POSITIVE_INFINITY;
  }

  assigned(): readonly TopicPartition[] {
    return this.#subscription?.assigned() ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#subscription?.close();
  }

  #receiveAll(records: readonly InboundRecord[]): void {
    const [oldest] = records;
    const newest = records.at(-1);
    if (oldest === undefined || newest === undefined) return;
    const { clock, topicDelay } = this.#deps;
    topicDelay.starts(oldest, newest.timestampMs, clock.monotonicMs());
    for (const record of records) this.#receive(record);
  }

  #receive(record: InboundRecord): void {
    const receivedAtMs = this.#deps.clock.monotonicMs();
    const inTopicMs = this.#deps.topicDelay.inTopicMs(record, receivedAtMs);
    this.#count(record, 1);
    const { unreadable } = record;
    if (unreadable === undefined) this.#decode(record, receivedAtMs, inTopicMs);
    else this.#deadLetter(record, undefined, unreadable.code, aboutBatch(unreadable));
  }

  #decode(record: InboundRecord, receivedAtMs: number, inTopicMs: number): void {
    const decoded = this.#read(record);
    switch (decoded?.status) {
      case undefined:
        return;
      case 'ok':
        this.#try(this.#delivery(record, decoded.value, receivedAtMs, inTopicMs), 1);
        return;
      case 'unreadable':
        this.#deadLetter(record, undefined, decoded.code, decoded.message);
        return;
      case 'schema-unknown':
        this.#schemaWait.wait(record, decoded, () => this.#decode(record, receivedAtMs, inTopicMs));
        return;
      default:
        decoded satisfies never;
    }
  }

  /** A codec throws for no bytes that we know of; where one does, it is poison, and the records that came with it do not suffer. */
  #read(record: InboundRecord): Decoded<T> | undefined {
    try {
      return this.#input.codec.decode(record.value, schemaOf(record.headers));
    } catch (error) {
      this.#deadLetter(record, undefined, 'POISON', `the decoder failed: ${messageOf(error)}`);
      return undefined;
    }
  }

  #delivery(record: InboundRecord, value: T, receivedAtMs: number, inTopicMs: number): Delivery<T> {
    return {
      record,
      value,
      receivedAtMs,
      inTopicMs,
      finish: (outputs) =>
        this.#publish(record, outputs, {
          smaller: (_, reason) => this.#deadLetter(record, value, 'TOO_LARGE', reason),
          anew: () => this.#decode(record, receivedAtMs, inTopicMs),
        }),
      deadLetter: (code, message) => this.#deadLetter(record, value, code, message),
      abandon: () => this.#count(record, -1),
    };
  }

  #try(delivery: Delivery<T>, attempt: number): void {
    try {
      this.#input.handle(delivery);
    } catch (error) {
      const log = this.#deps.telemetry.logger;
      log.warn(
        {
          stage: this.#input.name,
          attempt,
          topic: delivery.record.topic,
          partition: delivery.record.partition,
          offset: delivery.record.offset,
          error: String(error),
        },
        'a record could not be handled',
      );
      if (attempt >= this.#input.tries) {
        const code = error instanceof MillraceError ? error.code : 'POISON';
        this.#deadLetter(
          delivery.record,
          delivery.value,
          code,
          `failed ${attempt} times: ${messageOf(error)}`,
        );
        return;
      }
      this.#deps.clock.after(attempt * 10, () => this.#try(delivery, attempt + 1));
    }
  }

  /** A dead letter that is too large for its topic keeps the digest of the record's bytes, so that it stops no partition for good. */
  #deadLetter(record: InboundRecord, value: T | undefined, code: ErrorCode, message: string): void {
    const { deadLetters } = this.#input;
    this.#publishMade(record, (from) => deadLetters(from, value, code, message), {
      smaller: (refused) => {
        const topics = refused.map(({ topic }) => topic);
        this.#publishMade(record, (from) =>
          deadLetters(from, value, code, message, 'hash').filter(({ topic }) => topics.includes(topic)),
        );
      },
    });
  }

  /**
   * Where no dead letter can be made of a record with its headers it is made without them: nothing that somebody wrote there stops a partition. Where not even
   * that can be made the record waits, and with it the commit of its partition: it is not lost, and nobody else suffers.
   */
  #publishMade(
    record: InboundRecord,
    make: (from: InboundRecord) => readonly OutboundRecord[],
    otherwise: Otherwise = {},
  ): void {
    try {
      this.#publish(record, make(record), otherwise);
    } catch (error) {
      const { topic, partition, offset, headers } = record;
      const hasHeaders = Object.keys(headers).length > 0;
      this.#deps.telemetry.logger.error(
        { stage: this.#input.name, topic, partition, offset, error: messageOf(error) },
        hasHeaders
          ? 'no dead letter could be made of a record; it is made without its headers'
          : 'no dead letter could be made of a record; it is tried again',
      );
      if (hasHeaders) this.#publishMade({ ...record, headers: {} }, make, otherwise);
      else this.#later(record, () => this.#publishMade(record, make, otherwise));
    }
  }

  #publish(record: InboundRecord, outputs: readonly OutboundRecord[], otherwise: Otherwise): void {
    const [output] = outputs;
    if (output === undefined) this.#acknowledge(record);
    else if (outputs.length > 1) this.#publishAll(record, outputs, otherwise);
    else {
      this.#deps.bus.produce(traced(output, record)).then(
        () => this.#acknowledge(record),
        (error: unknown) => this.#refused(record, outputs, error, otherwise),
      );
    }
  }

  #publishAll(record: InboundRecord, outputs: readonly OutboundRecord[], otherwise: Otherwise): void {
    let pending = outputs.length;
    const refused: OutboundRecord[] = [];
    let failure: unknown;
    const settled = (): void => {
      pending -= 1;
      if (pending > 0) return;
      if (refused.length === 0) this.#acknowledge(record);
      else if (refused.length === outputs.length) this.#refused(record, refused, failure, otherwise);
      else this.#refused(record, refused, failure, { ...otherwise, anew: undefined });
    };
    for (const output of outputs) {
      this.#deps.bus.produce(traced(output, record)).then(settled, (error: unknown) => {
        failure ??= error;
        refused.push(output);
        settled();
      });
    }
  }

  /**
   * The bus refused outputs for good: what is too large is replaced, where it can be; what has no place (a topic was made anew with fewer
   * partitions) is worked on once more; the rest is tried again.
   */
  #refused(
    record: InboundRecord,
    refused: readonly OutboundRecord[],
    failure: unknown,
    otherwise: Otherwise,
  ): void {
    const code = failure instanceof MillraceError ? failure.code : 'POISON';
    this.#deps.telemetry.logger.error(
      {
        stage: this.#input.name,
        topics: refused.map((output) => output.topic),
        code,
        error: messageOf(failure),
      },
      'an output was refused',
    );
    const { smaller, anew } = otherwise;
    if (code === 'TOO_LARGE' && smaller !== undefined) smaller(refused, messageOf(failure));
    else if (code === 'BUS_UNAVAILABLE' && anew !== undefined) this.#later(record, anew);
    else this.#later(record, () => this.#publish(record, refused, otherwise));
  }

  /** A stage that was closed, or lost the record's partition, leaves the record to the next owner. */
  #later(record: InboundRecord, again: () => void): void {
    if (this.#closed) {
      this.#count(record, -1);
      return;
    }
    const cancel = this.#deps.clock.after(REFUSED_RETRY_MS, () => {
      this.#refusals.delete(refusal);
      again();
    });
    const refusal = { record, cancel };
    this.#refusals.add(refusal);
  }

  #acknowledge(record: InboundRecord): void {
    if (this.#subscription === undefined) this.#acknowledgedEarly.push(record);
    else this.#subscription.acknowledge(record);
    this.#count(record, -1);
  }

  #abandon(gone: (record: InboundRecord) => boolean): void {
    for (const record of this.#schemaWait.abandon(gone)) this.#count(record, -1);
    for (const refusal of this.#refusals) {
      if (!gone(refusal.record)) continue;
      refusal.cancel();
      this.#refusals.delete(refusal);
      this.#count(refusal.record, -1);
    }
    this.#input.abandon?.(gone);
  }

  async #release(partitions: readonly TopicPartition[]): Promise<void> {
    this.#abandon(matching(partitions));
    const isBusy = ({ topic, partition }: TopicPartition): boolean =>
      (this.#inFlight.get(topic)?.[partition] ?? 0) > 0;
    while (partitions.some(isBusy)) {
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
  }

  #count(record: InboundRecord, change: 1 | -1): void {
    const { topic, partition } = record;
    let counts = this.#inFlight.get(topic);
    if (counts === undefined) {
      counts = [];
      this.#inFlight.set(topic, counts);
    }
    const count = (counts[partition] ?? 0) + change;
    counts[partition] = count;
    this.#total += change;
    if (count <= 0) for (const resolve of this.#drained.splice(0)) resolve();
  }
}

function keyOf(where: TopicPartition): string {
  return `${where.topic}/${where.partition}`;
}

function matching(partitions: readonly TopicPartition[]): (record: InboundRecord) => boolean {
  const keys = new Set(partitions.map((partition) => keyOf(partition)));
  return (record) => keys.has(keyOf(record));
}

function aboutBatch({ reason, firstOffset, lastOffset, digest }: Unreadable): string {
  return `the batch of the offsets ${firstOffset} to ${lastOffset}, sha256 ${digest}, is refused: ${reason}`;
}

/** The output with the trace that its record belongs to. */
function traced(output: OutboundRecord, { headers }: InboundRecord): OutboundRecord {
  if (headers[TRACEPARENT] === undefined) return output;
  return { ...output, headers: { ...passedOn(headers), ...output.headers } };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
