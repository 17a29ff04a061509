import type { Batch, Consumer, Kafka, KafkaMessage } from 'kafkajs';
import type { Headers, InboundRecord, TopicPartition } from '../../../ports/message-bus.ts';
import type { PartitionOffset, Session, SessionListener, SessionOptions } from '../client.ts';
import { FETCH_BYTES_MAX, FetchOrder, PARTITION_BYTES_MAX } from '../fetch-order.ts';
import { byTopic } from '../partition-table.ts';
import { createAssigner } from './assigner.ts';
import type { ConsumerGroup, OffsetManager } from './internals.ts';
import { hookFetches, hookGroup } from './patches.ts';

const FETCH_WAIT_MS = 100;
const METADATA_AGE_MAX_MS = 5_000;
const HEARTBEAT_MOST_MS = 1_000;
/** In a row, while fetching; then the session is over and a new one is opened. */
const RETRY = { initialRetryTime: 100, multiplier: 2, factor: 0.2, maxRetryTime: 500, retries: 16 };

/** A kafkajs consumer as a session: eager and group-only as it is, steered through its assigner and the patched group. */
export class KafkaJsSession implements Session {
  readonly #listener: SessionListener;
  readonly #options: SessionOptions;
  readonly #consumer: Consumer;
  readonly #order = new FetchOrder();
  #group: ConsumerGroup | undefined;
  /** Of the current generation: its commits are refused once that is over. */
  #offsets: OffsetManager | undefined;
  #wantsRejoin = false;
  #isOver = false;
  #answeredFetchAt = performance.now();
  #answeredHeartbeatAt = performance.now();
  #joined = false;
  #firstCrash: ((error: unknown) => void) | undefined;

  constructor(kafka: Kafka, options: SessionOptions, listener: SessionListener) {
    this.#options = options;
    this.#listener = listener;
    hookFetches(kafka.logger(), (partitions) => this.#order.sorted(partitions));
    this.#consumer = kafka.consumer({
      groupId: options.group,
      partitionAssigners: [
        ({ cluster }) => {
          const assigner = createAssigner(cluster, options, () => listener.claims());
          hookGroup(assigner, {
            takesRejoin: () => this.#takeRejoin(),
            onOutOfRange: (partition) => this.#onOutOfRange(partition),
            onJoining: (group) => {
              this.#group = group;
              this.#wantsRejoin = false;
            },
          });
          return assigner;
        },
      ],
      sessionTimeout: options.sessionTimeoutMs,
      rebalanceTimeout: options.rebalanceTimeoutMs,
      heartbeatInterval: Math.min(HEARTBEAT_MOST_MS, Math.floor(options.sessionTimeoutMs / 6)),
      metadataMaxAge: METADATA_AGE_MAX_MS,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      minBytes: 1,
      maxBytes: FETCH_BYTES_MAX,
      maxBytesPerPartition: PARTITION_BYTES_MAX,
      allowAutoTopicCreation: false,
      retry: { ...RETRY, restartOnFailure: async () => false },
    });
  }

  /** Resolves after the first join. */
  async open(): Promise<void> {
    const consumer = this.#consumer;
    this.#listen();
    try {
      await consumer.connect();
      // Where no commit is found the adapter seeks; this is only what kafkajs does before.
      await consumer.subscribe({ topics: [...this.#options.topics], fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        this.#firstCrash = reject;
        consumer.run({ autoCommit: false, eachBatch: async ({ batch }) => this.#onBatch(batch) }).then(() => {
          if (this.#joined) resolve();
        }, reject);
      });
    } catch (error) {
      this.#isOver = true;
      await consumer.disconnect();
      throw error;
    } finally {
      this.#firstCrash = undefined;
    }
  }

  seek({ topic, partition }: TopicPartition, offset: number): void {
    if (!this.#isOver) this.#consumer.seek({ topic, partition, offset: String(offset) });
  }

  pause({ topic, partition }: TopicPartition): void {
    if (!this.#isOver) this.#consumer.pause([{ topic, partitions: [partition] }]);
  }

  resume({ topic, partition }: TopicPartition): void {
    if (this.#isOver) return;
    if (this.#fetchesNothing()) this.#answeredFetchAt = performance.now();
    this.#consumer.resume([{ topic, partitions: [partition] }]);
  }

  async commit(offsets: readonly PartitionOffset[]): Promise<void> {
    const topics = [...byTopic(offsets)].map(([topic, partitions]) => ({
      topic,
      partitions: partitions.map(({ partition, offset }) => ({ partition, offset: String(offset) })),
    }));
    await this.#offsets?.commitOffsets({ topics });
  }

  rejoin(): void {
    this.#wantsRejoin = true;
  }

  sinceContactMs(): number {
    const answeredAt = this.#fetchesNothing()
      ? Math.max(this.#answeredFetchAt, this.#answeredHeartbeatAt)
      : this.#answeredFetchAt;
    return performance.now() - answeredAt;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#consumer.disconnect();
  }

  #listen(): void {
    const { events } = this.#consumer;
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => this.#onJoined(payload));
    this.#consumer.on(events.CRASH, ({ payload }) => this.#onCrash(payload.error));
    this.#consumer.on(events.REQUEST, ({ payload: { apiName } }) => {
      if (apiName === 'Fetch') this.#answeredFetchAt = performance.now();
      else if (apiName === 'Heartbeat') this.#answeredHeartbeatAt = performance.now();
    });
    this.#consumer.on(events.END_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize === 0)
        this.#onNothingForUs(payload, Number(payload.firstOffset), Number(payload.lastOffset));
    });
  }

  /** Called by kafkajs after the group agreed and before the next fetch, and so must everything be that this leads to. */
  #onJoined({
    memberId,
    memberAssignment,
  }: {
    memberId: string;
    memberAssignment: Record<string, number[]>;
  }): void {
    const group = this.#group;
    if (group === undefined || this.#isOver) return;
    this.#joined = true;
    this.#offsets = group.offsetManager;
    this.#answeredFetchAt = performance.now();
    const partitions = Object.entries(memberAssignment).flatMap(([topic, list]) =>
      list.map((partition) => ({ topic, partition })),
    );
    this.#listener.onJoined(this, { memberId, generation: group.generationId, partitions });
  }

  #onBatch(batch: Batch): void {
    if (this.#isOver) return;
    this.#order.served(batch);
    // Where the fetch began, which its first record does not tell: offsets can have gaps.
    const { fetchedOffset } = batch as Batch & { fetchedOffset: string };
    const assignment = this.#listener.admit(batch, Number(fetchedOffset));
    if (assignment === undefined) {
      const position = this.#listener.positionOf(batch);
      if (position !== undefined) this.seek(batch, position);
      return;
    }
    const { topic, partition, messages } = batch;
    const records = messages.map((message) => toRecord(topic, partition, message, assignment));
    this.#listener.onFetched(batch, records, Number(batch.lastOffset()) + 1);
  }

  /** A fetch of nothing but markers of transactions, or of what was aborted: `eachBatch` is not told, but the position moved. */
  #onNothingForUs(at: TopicPartition, firstOffset: number, lastOffset: number): void {
    if (this.#isOver) return;
    this.#order.served(at);
    const position = this.#listener.positionOf(at);
    if (position === undefined || this.#group?.hasSeekOffset(at)) return;
    if (firstOffset >= position) this.#listener.onFetched(at, [], lastOffset + 1);
  }

  #onOutOfRange(partition: TopicPartition): void {
    if (this.#isOver) return;
    this.pause(partition);
    this.#listener.onOutOfRange(partition);
  }

  #onCrash(error: Error): void {
    if (this.#isOver) return;
    if (!this.#joined) {
      this.#firstCrash?.(error);
      return;
    }
    this.#isOver = true;
    this.#listener.onCrashed(this, error);
  }

  #takeRejoin(): boolean {
    const wanted = this.#wantsRejoin;
    this.#wantsRejoin = false;
    return wanted;
  }

  #fetchesNothing(): boolean {
    return this.#group?.subscriptionState.active().every(({ partitions }) => partitions.length === 0) ?? true;
  }
}

const NO_HEADERS: Headers = Object.freeze({});

function toRecord(
  topic: string,
  partition: number,
  message: KafkaMessage,
  assignment: number,
): InboundRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    timestampMs: Number(message.timestamp),
    key: message.key,
    value: message.value,
    headers: toHeaders(message.headers),
    assignment,
  };
}

/** Where a header stands several times, the last one counts: retries that append make them grow otherwise. */
function toHeaders(headers: KafkaMessage['headers']): Headers {
  let isEmpty = true;
  for (const name in headers) {
    isEmpty = false;
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = value.at(-1);
  }
  return isEmpty ? NO_HEADERS : (headers as Headers);
}
