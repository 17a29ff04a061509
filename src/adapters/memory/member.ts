import { MillraceError } from '../../core/errors.ts';
import type {
  BusOptions,
  InboundRecord,
  StartAt,
  SubscribeOptions,
  Subscriber,
  Subscription,
  TopicPartition,
} from '../../ports/message-bus.ts';
import type { Counter } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import type { CursorSurroundings } from './cursor.ts';
import type { Grant, Group, GroupMember } from './group.ts';
import type { LinkListener } from './link.ts';
import { type DeliveryLimits, OwnedPartition, type RecordSink } from './owned-partition.ts';
import type { Topic } from './topic.ts';

const UNACKNOWLEDGED_MAX = 1_000;
const UNACKNOWLEDGED_BYTES_MAX = 16 * 2 ** 20;
/** Before a partition is delivered again to a subscriber that threw. */
const START_AGAIN_MS = 500;

export interface MemberSurroundings extends CursorSurroundings {
  group: Group;
  findTopic(name: string): Topic | undefined;
  options: BusOptions;
  /** Called when the member has left its group. */
  left(): void;
}

/** One subscription: a member of a group on the client's side of the link. */
export class Member implements Subscription, GroupMember, RecordSink, LinkListener {
  readonly topics: readonly string[];
  readonly slots?: readonly number[];
  readonly startAt: StartAt;
  readonly #limits: DeliveryLimits;
  readonly #subscriber: Subscriber;
  readonly #surroundings: MemberSurroundings;
  readonly #group: string;
  readonly #skippedRecords: Counter;
  readonly #owned = new Map<string, Map<number, OwnedPartition>>();
  readonly #toCommit = new Set<OwnedPartition>();
  readonly #drains = new Set<Promise<void>>();
  #sessionExpired = false;
  #closing: Promise<void> | undefined;

  constructor(options: SubscribeOptions, subscriber: Subscriber, surroundings: MemberSurroundings) {
    this.topics = [...new Set(options.topics)];
    if (options.slots !== undefined) this.slots = options.slots;
    this.startAt = options.startAt;
    this.#group = options.group;
    this.#limits = {
      unacknowledgedMax: options.unacknowledgedMax ?? UNACKNOWLEDGED_MAX,
      unacknowledgedBytesMax: options.unacknowledgedBytesMax ?? UNACKNOWLEDGED_BYTES_MAX,
    };
    this.#subscriber = subscriber;
    this.#surroundings = surroundings;
    this.#skippedRecords = surroundings.options.telemetry.counter({
      name: 'millrace_bus_skipped_records_total',
      help: 'Records that retention took away before they were delivered.',
      labels: ['topic', 'group'],
    });
    surroundings.link.listeners.add(this);
  }

  // What the subscriber asks.

  acknowledge(record: InboundRecord): void {
    const partition = this.#owned.get(record.topic)?.get(record.partition);
    if (partition === undefined || partition.grant.assignment !== record.assignment) return;
    if (partition.acknowledge(record.offset)) this.#commitSoon(partition);
  }

  assigned(): readonly TopicPartition[] {
    return places(this.#partitions());
  }

  sinceLastFetchMs(): number {
    return this.#surroundings.link.sinceUpMs();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  // What the coordinator asks: each goes over the link, and by the time it arrives the grants may be stale.

  grant(grants: readonly Grant[]): void {
    this.#surroundings.link.call(() => this.#take(grants));
  }

  revoke(grants: readonly Grant[]): void {
    this.#surroundings.link.call(() => {
      if (this.#sessionExpired) return;
      const partitions = this.#heldUnder(grants).filter((partition) => !partition.draining);
      if (partitions.length > 0) this.#track(this.#letGo(partitions));
    });
  }

  withdraw(grants: readonly Grant[]): void {
    this.#surroundings.link.call(() => this.#lose(this.#heldUnder(grants)));
  }

  expired(): void {
    this.#sessionExpired = true;
  }

  reconnected(): void {
    if (!this.#sessionExpired) return;
    this.#surroundings.link.call(() => {
      this.#sessionExpired = false;
      this.#lose(this.#partitions());
      if (this.#closing === undefined) this.#surroundings.group.join(this);
    });
  }

  /** The client was killed: nothing is called any more. */
  kill(): void {
    for (const partition of this.#partitions()) this.#drop(partition);
  }

  records(records: readonly InboundRecord[]): void {
    try {
      this.#subscriber.onRecords(records);
    } catch (error) {
      this.#report(error);
      this.#startAgain(records);
    }
  }

  skipped({ topic, partition }: TopicPartition, count: number): void {
    this.#skippedRecords.add(count, { topic, group: this.#group });
    this.#report(
      new MillraceError(
        'BUS_UNAVAILABLE',
        `Retention took records of ${topic}/${partition} before they were read`,
        {
          value: `${count} records`,
          advice: 'Raise retention.ms or the bytes that a topic may keep, or read faster.',
        },
      ),
    );
  }

  /**
   * The subscriber threw, and how much it took of what it was given is not known: everything that is not acknowledged is delivered again after a
   * while, under a new assignment.
   */
  #startAgain([first]: readonly InboundRecord[]): void {
    if (first === undefined) return;
    const partition = this.#owned.get(first.topic)?.get(first.partition);
    if (partition === undefined || partition.grant.assignment !== first.assignment) return;
    this.#lose([partition]);
    const { clock, group, link } = this.#surroundings;
    clock.after(START_AGAIN_MS, () => link.call(() => group.release(this, [partition.grant])));
  }

  #take(grants: readonly Grant[]): void {
    if (this.#closing !== undefined || this.#sessionExpired) return;
    const taken = grants.map((grant) => new OwnedPartition(grant, this.#limits, this));
    for (const partition of taken) this.#add(partition);
    this.#tell(() => this.#subscriber.onAssigned?.(places(taken)));
    for (const partition of taken) {
      const log = this.#surroundings.findTopic(partition.grant.topic)?.partitions[partition.grant.partition];
      if (log !== undefined) partition.startDelivery(log, this.#surroundings);
    }
  }

  /** Drains partitions, then releases them at the broker; what was acknowledged in time is committed on the same way before that. */
  async #letGo(partitions: readonly OwnedPartition[]): Promise<void> {
    await this.#drain(partitions);
    const { group, link } = this.#surroundings;
    const grants = partitions.map(({ grant }) => grant);
    link.call(() => group.release(this, grants));
  }

  async #drain(partitions: readonly OwnedPartition[]): Promise<void> {
    for (const partition of partitions) {
      partition.draining = true;
      partition.stopDelivery();
    }
    await this.#revoked(places(partitions));
    for (const partition of partitions) this.#drop(partition);
  }

  async #revoked(revoked: readonly TopicPartition[]): Promise<void> {
    const { clock, options } = this.#surroundings;
    if (this.#subscriber.onRevoked === undefined || revoked.length === 0) return;
    try {
      const drained = this.#subscriber.onRevoked(revoked).then(() => true);
      if (await within(clock, drained, options.drainTimeoutMs, false)) return;
      options.telemetry.logger.warn(
        { group: this.#group, partitions: revoked, drainTimeoutMs: options.drainTimeoutMs },
        'Partitions were let go before they were drained; what was not acknowledged is delivered again.',
      );
    } catch (error) {
      this.#report(error);
    }
  }

  async #close(): Promise<void> {
    const { clock, group, link, options } = this.#surroundings;
    if (link.killed) return;
    const partitions = this.#partitions().filter((partition) => !partition.draining);
    await Promise.all([this.#letGo(partitions), ...this.#drains]);
    const left = new Promise<void>((resolve) => {
      link.call(() => {
        group.leave(this);
        this.#surroundings.left();
        resolve();
      });
    });
    // A broker that is away is not waited for: it will find the member gone when the session runs out.
    await within(clock, left, options.drainTimeoutMs, undefined);
    link.listeners.delete(this);
  }

  #lose(partitions: readonly OwnedPartition[]): void {
    if (partitions.length === 0) return;
    for (const partition of partitions) this.#drop(partition);
    this.#tell(() => this.#subscriber.onLost?.(places(partitions)));
  }

  #commitSoon(partition: OwnedPartition): void {
    const isFirst = this.#toCommit.size === 0;
    this.#toCommit.add(partition);
    if (!isFirst) return;
    this.#surroundings.link.call(() => {
      for (const { grant, contiguous } of this.#toCommit)
        this.#surroundings.group.commit(this, grant, contiguous);
      this.#toCommit.clear();
    });
  }

  #track(drain: Promise<void>): void {
    this.#drains.add(drain);
    drain.then(
      () => this.#drains.delete(drain),
      (error: unknown) => this.#report(error),
    );
  }

  #report(error: unknown): void {
    const { logger } = this.#surroundings.options.telemetry;
    if (this.#subscriber.onError === undefined) {
      logger.error({ group: this.#group, error }, 'A subscription failed.');
      return;
    }
    try {
      this.#subscriber.onError(error);
    } catch (thrown) {
      logger.error({ group: this.#group, error: thrown }, 'onError threw');
    }
  }

  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#report(error);
    }
  }

  #add(partition: OwnedPartition): void {
    const { topic } = partition.grant;
    const ofTopic = this.#owned.get(topic) ?? new Map<number, OwnedPartition>();
    ofTopic.set(partition.grant.partition, partition);
    this.#owned.set(topic, ofTopic);
  }

  #drop(partition: OwnedPartition): void {
    partition.stopDelivery();
    const ofTopic = this.#owned.get(partition.grant.topic);
    if (ofTopic?.get(partition.grant.partition) === partition) ofTopic.delete(partition.grant.partition);
  }

  #partitions(): OwnedPartition[] {
    return [...this.#owned.values()].flatMap((ofTopic) => [...ofTopic.values()]);
  }

  #heldUnder(grants: readonly Grant[]): OwnedPartition[] {
    const assignments = new Set(grants.map(({ assignment }) => assignment));
    return this.#partitions().filter(({ grant }) => assignments.has(grant.assignment));
  }
}

function places(partitions: readonly OwnedPartition[]): TopicPartition[] {
  return partitions.map(({ grant: { topic, partition } }) => ({ topic, partition }));
}
