import type {
  InboundRecord,
  SubscribeOptions,
  Subscriber,
  Subscription,
  TopicPartition,
} from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Claims } from './claims.ts';
import type { Joined, KafkaClient, Session, SessionListener, SessionOptions } from './client.ts';
import { CommitLoop } from './commit-loop.ts';
import { type OwnedPartition, toTopicPartition } from './owned-partition.ts';
import { Ownership } from './ownership.ts';
import { SessionKeeper } from './session-keeper.ts';
import type { OutOfRangePolicy } from './start-position.ts';
import { noteUnreadable } from './unreadable.ts';

const UNACKNOWLEDGED_MAX = 1_000;
const UNACKNOWLEDGED_BYTES_MAX = 16 * 2 ** 20;

export interface SubscriptionContext {
  client: KafkaClient;
  logger: Logger;
  drainTimeoutMs: number;
  sessionTimeoutMs: number;
  staleMs: number;
  outOfRange: OutOfRangePolicy;
  /** Numbers the assignments of all subscriptions of the bus. */
  nextAssignment(): number;
  /** A session ended by itself, and another one is opened. */
  onRestart(): void;
  /** Reading could not go on where it should have. */
  onOutOfRange(): void;
  /** So many records lie in batches that are refused. */
  onUnreadable(offsets: number): void;
  onClosed(): void;
}

/** A member of a consumer group: between its session with the broker and its subscriber. */
export class GroupSubscription implements Subscription, SessionListener {
  readonly #context: SubscriptionContext;
  readonly #options: SubscribeOptions;
  readonly #subscriber: Subscriber;
  readonly #keeper: SessionKeeper;
  readonly #ownership: Ownership;
  readonly #commits: CommitLoop;
  readonly #logger: Logger;
  #closed: Promise<void> | undefined;

  constructor(context: SubscriptionContext, options: SubscribeOptions, subscriber: Subscriber) {
    this.#context = context;
    this.#options = options;
    this.#subscriber = subscriber;
    this.#logger = context.logger.child({ group: options.group });
    this.#commits = new CommitLoop(
      () => this.#ownership.session,
      () => this.#ownership.committable(),
      this.#logger,
    );
    this.#ownership = new Ownership({
      ...context,
      subscribe: options,
      subscriber,
      limits: {
        unacknowledgedMax: options.unacknowledgedMax ?? UNACKNOWLEDGED_MAX,
        unacknowledgedBytesMax: options.unacknowledgedBytesMax ?? UNACKNOWLEDGED_BYTES_MAX,
      },
      logger: this.#logger,
      commitNow: () => this.#commits.now(),
      commitSoon: () => this.#commits.soon(),
      onError: (error) => this.#report(error),
    });
    this.#keeper = new SessionKeeper({
      open: () => context.client.openSession(this.#sessionOptions(), this),
      onOver: (error) => this.#onSessionOver(error),
      staleMs: context.staleMs,
      logger: this.#logger,
    });
  }

  /** Resolves once the member has joined and its first partitions, if any, are delivered. */
  async start(): Promise<void> {
    await this.#keeper.start();
    await this.#ownership.settled;
  }

  acknowledge(record: InboundRecord): void {
    const owned = this.#ownership.get(record.topic, record.partition);
    if (owned === undefined || owned.assignment !== record.assignment) return;
    if (!owned.queue.acknowledge(record.offset)) return;
    this.#commits.soon();
    if (owned.queue.held > 0 && !owned.isDeliverySoon) this.#deliverSoon(owned);
  }

  assigned(): readonly TopicPartition[] {
    return this.#ownership.live().map(toTopicPartition);
  }

  sinceLastFetchMs(): number {
    return this.#keeper.sinceContactMs();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#ownership.releaseAll();
    this.#commits.stop();
    await this.#keeper.close();
    this.#ownership.clear();
    this.#context.onClosed();
  }

  #sessionOptions(): SessionOptions {
    const { group, topics, slots } = this.#options;
    const { sessionTimeoutMs } = this.#context;
    return {
      group,
      topics,
      membership: slots === undefined ? { kind: 'spread' } : { kind: 'slots', slots },
      sessionTimeoutMs,
      // Nobody drains before it joins again: whoever is late is in trouble.
      rebalanceTimeoutMs: sessionTimeoutMs,
    };
  }

  // What sessions call

  claims(): Claims {
    const owned = this.#ownership.all().map(toTopicPartition);
    const { slots } = this.#options;
    const claims = { generation: this.#ownership.generation, owned };
    return slots === undefined ? claims : { ...claims, slots };
  }

  onJoined(session: Session, joined: Joined): void {
    this.#ownership.joined(session, joined);
  }

  admit({ topic, partition }: TopicPartition, offset: number): number | undefined {
    const owned = this.#ownership.get(topic, partition);
    return owned?.state === 'live' && owned.queue.position === offset ? owned.assignment : undefined;
  }

  positionOf({ topic, partition }: TopicPartition): number | undefined {
    const owned = this.#ownership.get(topic, partition);
    return owned?.state === 'live' ? owned.queue.position : undefined;
  }

  onFetched({ topic, partition }: TopicPartition, records: InboundRecord[], position: number): void {
    const owned = this.#ownership.get(topic, partition);
    if (owned === undefined) return;
    noteUnreadable(records, { logger: this.#logger, onUnreadable: this.#context.onUnreadable });
    owned.queue.offer(records, position);
    if (records.length === 0) this.#commits.soon();
    this.#deliver(owned);
  }

  onOutOfRange({ topic, partition }: TopicPartition): void {
    const owned = this.#ownership.get(topic, partition);
    if (owned?.state === 'live') void this.#ownership.findAgain(owned);
  }

  onCrashed(session: Session, error: unknown): void {
    this.#keeper.over(session, error);
  }

  #onSessionOver(error: unknown): void {
    this.#logger.warn({ error }, 'the consumer stopped');
    this.#context.onRestart();
    this.#ownership.lose();
    this.#report(error);
  }

  /** After the current turn of the event loop: a full queue would otherwise deliver one record per acknowledgement. */
  #deliverSoon(owned: OwnedPartition): void {
    owned.isDeliverySoon = true;
    setImmediate(() => {
      owned.isDeliverySoon = false;
      if (owned.state === 'live') this.#deliver(owned);
    });
  }

  /** Hands over what may be delivered. */
  #deliver(owned: OwnedPartition): void {
    try {
      for (let records = owned.queue.take(); records.length > 0; records = owned.queue.take()) {
        this.#subscriber.onRecords(records);
      }
    } catch (error) {
      this.#report(error);
      void this.#ownership.startAgain(owned);
    }
    this.#regulate(owned);
  }

  #regulate(owned: OwnedPartition): void {
    if (owned.state !== 'live') return;
    if (!owned.paused && owned.queue.full) {
      owned.paused = true;
      this.#ownership.session?.pause(owned);
    } else if (owned.paused && owned.queue.low) {
      owned.paused = false;
      this.#ownership.session?.resume(owned);
    }
  }

  #report(error: unknown): void {
    try {
      this.#subscriber.onError?.(error);
    } catch (thrown) {
      this.#logger.error({ error: thrown }, 'onError threw');
    }
  }
}
