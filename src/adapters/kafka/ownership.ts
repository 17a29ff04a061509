import type { SubscribeOptions, Subscriber, TopicPartition } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { TIMERS } from './backoff.ts';
import type { Joined, KafkaClient, Session } from './client.ts';
import { OwnedPartition, toTopicPartition } from './owned-partition.ts';
import type { QueueLimits } from './partition-queue.ts';
import { PartitionTable } from './partition-table.ts';
import type { OutOfRangePolicy } from './start-position.ts';
import { findStarts, type StartSearch } from './start-search.ts';

/** Before a partition is delivered again to a subscriber that threw. */
const START_AGAIN_MS = 500;

export interface OwnershipOptions {
  client: KafkaClient;
  subscribe: SubscribeOptions;
  subscriber: Subscriber;
  limits: QueueLimits;
  drainTimeoutMs: number;
  outOfRange: OutOfRangePolicy;
  logger: Logger;
  nextAssignment(): number;
  /** Commits what is acknowledged, before partitions are let go. */
  commitNow(): Promise<void>;
  /** There is something new to commit. */
  commitSoon(): void;
  onError(error: unknown): void;
  onOutOfRange(): void;
}

/**
 * The partitions of one member, as the group gives and takes them. What stays in a rebalance goes on as if nothing had happened. What goes
 * is drained and committed while it is still ours, and only then do we ask for the rebalance that gives it to another member.
 */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #table = new PartitionTable<OwnedPartition>();
  /** What the group gave us last; some of it may have to wait for a drain. */
  #assigned: readonly TopicPartition[] = [];
  #session: Session | undefined;
  #memberId: string | undefined;
  #generation = -1;
  #closing = false;
  #settled = Promise.withResolvers<void>();

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  get session(): Session | undefined {
    return this.#session;
  }

  get generation(): number {
    return this.#generation;
  }

  /** Resolves when the first partitions that the group gave, if any, are delivered. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  get(topic: string, partition: number): OwnedPartition | undefined {
    return this.#table.get(topic, partition);
  }

  all(): readonly OwnedPartition[] {
    return this.#table.values();
  }

  live(): readonly OwnedPartition[] {
    return this.#table.values().filter(({ state }) => state === 'live');
  }

  /** Partitions whose position is known: `starting` ones have nothing to commit. */
  committable(): readonly OwnedPartition[] {
    return this.#table.values().filter(({ state }) => state !== 'starting');
  }

  joined(session: Session, { memberId, generation, partitions }: Joined): void {
    // A member that the group gave up owns nothing any more: others may have had its partitions, and be done with them.
    if (this.#memberId !== undefined && this.#memberId !== memberId) this.lose();
    this.#session = session;
    this.#memberId = memberId;
    this.#generation = generation;
    this.#assigned = partitions;
    const assigned = new PartitionTable<true>();
    for (const { topic, partition } of partitions) assigned.set(topic, partition, true);
    const going: OwnedPartition[] = [];
    for (const owned of this.#table.values()) {
      if (owned.state === 'leaving') continue;
      if (!assigned.get(owned.topic, owned.partition)) going.push(owned);
      else if (owned.state === 'live') goOn(session, owned);
      else session.pause(owned);
    }
    if (this.#closing) return;
    if (going.length > 0) void this.#release(going);
    this.#add(session);
  }

  /** The session is over, and with it the membership. */
  lose(): void {
    const lost = this.live().map(toTopicPartition);
    this.#table.clear();
    this.#assigned = [];
    this.#session = undefined;
    this.#memberId = undefined;
    if (lost.length === 0) return;
    this.#options.logger.warn({ partitions: lost.length }, 'partitions were lost without notice');
    this.#tell(() => this.#options.subscriber.onLost?.(lost));
  }

  /** Lets go of everything, drained and committed; takes nothing from now on. */
  async releaseAll(): Promise<void> {
    this.#closing = true;
    this.#settled.resolve();
    await this.#drain(this.live());
  }

  clear(): void {
    this.#table.clear();
    this.#session = undefined;
  }

  /** The log has nothing at the partition's position. Where it has it after all (a leader that was behind), nothing changed. */
  async findAgain(owned: OwnedPartition): Promise<void> {
    const position = owned.queue.position;
    const [found] = await findStarts({ ...this.#search([owned], 'live'), position });
    if (found === undefined || !this.#isCurrent(owned, 'live')) return;
    if (found.start.reason === 'committed') {
      this.#fetchFrom(owned, position);
      return;
    }
    this.#goOnAt(this.#replace(owned), found.start.offset);
  }

  /**
   * The subscriber threw, and how much it took of what it was given is not known: everything that is not acknowledged is delivered again after a
   * while, under a new assignment.
   */
  async startAgain(owned: OwnedPartition): Promise<void> {
    if (!this.#isCurrent(owned, 'live')) return;
    const position = owned.queue.committable;
    this.#session?.pause(owned);
    const next = this.#replace(owned);
    await new Promise((resolve) => setTimeout(resolve, START_AGAIN_MS));
    if (this.#isCurrent(next, 'starting')) this.#goOnAt(next, position);
  }

  /** The same partition under a new assignment: what was delivered under the old one is lost. */
  #replace(owned: OwnedPartition): OwnedPartition {
    const next = new OwnedPartition(owned, this.#options.nextAssignment(), this.#options.limits);
    owned.state = 'leaving';
    owned.queue.drop();
    this.#table.set(owned.topic, owned.partition, next);
    this.#tell(() => this.#options.subscriber.onLost?.([toTopicPartition(owned)]));
    return next;
  }

  #goOnAt(next: OwnedPartition, position: number): void {
    next.start(position);
    this.#tell(() => this.#options.subscriber.onAssigned?.([toTopicPartition(next)]));
    this.#options.commitSoon();
    this.#fetchFrom(next, position);
  }

  /** Takes over what the group assigned and is not ours yet. What still drains comes when it is done. */
  #add(session: Session): void {
    const added: OwnedPartition[] = [];
    for (const partition of this.#assigned) {
      const present = this.#table.get(partition.topic, partition.partition);
      if (present === undefined) {
        const owned = new OwnedPartition(partition, this.#options.nextAssignment(), this.#options.limits);
        this.#table.set(partition.topic, partition.partition, owned);
        added.push(owned);
      }
      if (present === undefined || present.state === 'leaving') session.pause(partition);
    }
    if (added.length > 0) void this.#begin(added);
    else this.#settled.resolve();
  }

  async #begin(added: readonly OwnedPartition[]): Promise<void> {
    const found = await findStarts(this.#search(added, 'starting'));
    const present = found.filter(({ partition }) => this.#isCurrent(partition, 'starting'));
    for (const { partition, start } of present) {
      partition.start(start.offset);
      // Where nothing is committed, "latest" would be another place after a restart: it is pinned by a commit.
      const pinned =
        start.reason === 'out of range' ||
        (start.reason === 'nothing committed' && this.#options.subscribe.startAt === 'latest');
      if (!pinned) partition.committed = start.offset;
    }
    if (present.length > 0) {
      this.#options.commitSoon();
      this.#tell(() =>
        this.#options.subscriber.onAssigned?.(present.map(({ partition }) => toTopicPartition(partition))),
      );
    }
    for (const { partition, start } of present) this.#fetchFrom(partition, start.offset);
    this.#settled.resolve();
  }

  async #release(going: readonly OwnedPartition[]): Promise<void> {
    await this.#drain(going.filter(({ state }) => state === 'live'));
    for (const owned of going) {
      if (this.#table.get(owned.topic, owned.partition) === owned)
        this.#table.delete(owned.topic, owned.partition);
    }
    const session = this.#session;
    if (session === undefined || this.#closing) return;
    this.#add(session);
    session.rejoin();
  }

  async #drain(leaving: readonly OwnedPartition[]): Promise<void> {
    if (leaving.length === 0) return;
    for (const owned of leaving) {
      owned.state = 'leaving';
      owned.queue.drop();
      this.#session?.pause(owned);
    }
    const isGivenUp = await within(
      TIMERS,
      this.#revoke(leaving.map(toTopicPartition)).then(() => true),
      this.#options.drainTimeoutMs,
      false,
    );
    const open = leaving.reduce((sum, { queue }) => sum + queue.unacknowledged, 0);
    if (open > 0) {
      const about = {
        partitions: leaving.length,
        unacknowledged: open,
        drainTimeoutMs: this.#options.drainTimeoutMs,
      };
      const text = 'partitions go with work unfinished: the next owner does it again';
      // Who gave it up in time meant to: a reader who leaves its loop, a worker whose queue goes with the slot.
      if (isGivenUp) this.#options.logger.info(about, text);
      else this.#options.logger.warn(about, text);
    }
    await this.#options.commitNow();
  }

  async #revoke(partitions: readonly TopicPartition[]): Promise<void> {
    try {
      await this.#options.subscriber.onRevoked?.(partitions);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #fetchFrom(owned: OwnedPartition, position: number): void {
    owned.paused = false;
    this.#session?.seek(owned, position);
    this.#session?.resume(owned);
  }

  #search(
    partitions: readonly OwnedPartition[],
    state: OwnedPartition['state'],
  ): StartSearch<OwnedPartition> {
    const { client, outOfRange, logger, subscribe, onError, onOutOfRange } = this.#options;
    return {
      client,
      group: subscribe.group,
      startAt: subscribe.startAt,
      outOfRange,
      logger,
      partitions,
      stillWanted: (wanted) => wanted.filter((owned) => this.#isCurrent(owned, state)),
      onError,
      onOutOfRange: (error) => {
        onOutOfRange();
        onError(error);
      },
    };
  }

  #isCurrent(owned: OwnedPartition, state: OwnedPartition['state']): boolean {
    return !this.#closing && owned.state === state && this.#table.get(owned.topic, owned.partition) === owned;
  }

  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.onError(error);
    }
  }
}

/** The session forgot where a partition was: the group agreed anew. */
function goOn(session: Session, owned: OwnedPartition): void {
  session.seek(owned, owned.queue.position);
  if (owned.paused) session.pause(owned);
  else session.resume(owned);
}
