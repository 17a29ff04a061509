import { randomUUID } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import type {
  BroadcastOptions,
  BusAdmin,
  InboundRecord,
  MessageBus,
  OnStored,
  OutboundRecord,
  Reader,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { TIMERS } from './backoff.ts';
import { createBusAdmin } from './bus-admin.ts';
import type { KafkaClient } from './client.ts';
import { GroupSubscription } from './group-subscription.ts';
import type { KafkaBusOptions } from './options.ts';
import { PartitionReader } from './partition-reader.ts';
import { SendQueue } from './send-queue.ts';
import { TopicCatalog } from './topic-catalog.ts';

/** A consumer that heard nothing for this long is given up, even though it may only wait for a broker that is away. */
const STALE_MS = 45_000;
const CLIENT_CLOSE_TIMEOUT_MS = 2_000;
/** What the consumers' drain still produced gets this much time at least. */
const LAST_SEND_TIMEOUT_MS = 1_000;

export interface KafkaBus extends MessageBus {
  /** The longest time since any of its consumers heard from the broker; 0 without consumers. */
  sinceLastFetchMs(): number;
}

/** The bus over a client library: all promises of the port are kept here and below, whatever the library. */
export class KafkaMessageBus implements KafkaBus {
  readonly admin: BusAdmin;
  readonly #client: KafkaClient;
  readonly #options: KafkaBusOptions;
  readonly #catalog: TopicCatalog;
  readonly #sending: SendQueue;
  readonly #logger: Logger;
  readonly #consumers = new Set<GroupSubscription | PartitionReader>();
  readonly #countRestart: () => void;
  readonly #countOutOfRange: () => void;
  readonly #countUnreadable: (offsets: number) => void;
  #assignments = 0;
  #closed: Promise<void> | undefined;

  constructor(client: KafkaClient, options: KafkaBusOptions) {
    const { telemetry } = options;
    const retries = telemetry.counter({
      name: 'millrace_bus_send_retries_total',
      help: 'Produce attempts that had to be made again.',
    });
    const restarts = telemetry.counter({
      name: 'millrace_bus_consumer_restarts_total',
      help: 'Consumers that stopped by themselves.',
    });
    const outOfRange = telemetry.counter({
      name: 'millrace_bus_offset_out_of_range_total',
      help: 'Partitions whose reading could not go on where it stopped, because the log no longer has that offset.',
    });
    const unreadable = telemetry.counter({
      name: 'millrace_bus_unreadable_records_total',
      help: 'Records in batches that unpack to more than a consumer takes, or to what are no records.',
    });
    this.#client = client;
    this.#options = options;
    this.#logger = telemetry.logger.child({ component: 'bus', client: options.client });
    this.#countRestart = () => restarts.add(1);
    this.#countOutOfRange = () => outOfRange.add(1);
    this.#countUnreadable = (offsets) => unreadable.add(offsets);
    this.#catalog = new TopicCatalog(client);
    this.#sending = new SendQueue({
      client,
      catalog: this.#catalog,
      logger: this.#logger,
      onRetry: () => retries.add(1),
    });
    this.admin = createBusAdmin(client);
  }

  produce(record: OutboundRecord, onStored?: OnStored): Promise<void> {
    return this.#sending.produce(record, onStored);
  }

  partitionCount(topic: string): Promise<number> {
    return this.#catalog.partitionCount(topic);
  }

  async subscribe(options: SubscribeOptions, subscriber: Subscriber): Promise<Subscription> {
    await this.#checkTopics(options.topics);
    if (options.slots !== undefined && options.topics.length !== 1) {
      throw new MillraceError('INVALID_CONFIG', 'A slot subscription has exactly one topic', {
        value: options.topics,
      });
    }
    const subscription = new GroupSubscription(
      {
        ...this.#consumerContext(() => this.#consumers.delete(subscription)),
        drainTimeoutMs: this.#options.drainTimeoutMs,
        nextAssignment: () => ++this.#assignments,
      },
      options,
      subscriber,
    );
    return this.#start(subscription);
  }

  async read(
    options: BroadcastOptions,
    onRecords: (records: readonly InboundRecord[]) => void,
  ): Promise<Reader> {
    await this.#checkTopics(options.topics);
    const context = {
      ...this.#consumerContext(() => this.#consumers.delete(reader)),
      newGroup: () => `millrace.reader.${randomUUID()}`,
      assignment: ++this.#assignments,
    };
    const reader = new PartitionReader(context, options, onRecords);
    return this.#start(reader);
  }

  sinceLastFetchMs(): number {
    return Math.max(0, ...[...this.#consumers].map((consumer) => consumer.sinceLastFetchMs()));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Consumers first: what they drain may still be produced. */
  async #close(): Promise<void> {
    const startedAt = performance.now();
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
    const leftMs = this.#options.drainTimeoutMs - (performance.now() - startedAt);
    await this.#sending.close(Math.max(leftMs, LAST_SEND_TIMEOUT_MS));
    // A client waits for answers that may never come.
    const closed = this.#client.close().catch((error: unknown) => {
      this.#logger.warn({ error }, 'closing the client failed');
    });
    await within(TIMERS, closed, CLIENT_CLOSE_TIMEOUT_MS, undefined);
  }

  async #start<T extends GroupSubscription | PartitionReader>(consumer: T): Promise<T> {
    if (this.#closed !== undefined) throw new MillraceError('BUS_UNAVAILABLE', 'The bus is closed');
    this.#consumers.add(consumer);
    await consumer.start();
    return consumer;
  }

  async #checkTopics(topics: readonly string[]): Promise<void> {
    if (topics.length === 0) throw new MillraceError('INVALID_CONFIG', 'A subscription without topics');
    await Promise.all(
      topics.map((topic) => this.#catalog.awaitTopic(topic, () => this.#closed === undefined)),
    );
  }

  #consumerContext(onClosed: () => void) {
    const { sessionTimeoutMs, outOfRange = 'earliest' } = this.#options;
    return {
      client: this.#client,
      logger: this.#logger,
      sessionTimeoutMs,
      staleMs: STALE_MS,
      outOfRange,
      onRestart: this.#countRestart,
      onOutOfRange: this.#countOutOfRange,
      onUnreadable: this.#countUnreadable,
      onClosed,
    };
  }
}
