import type { ErrorCode } from '../core/errors.ts';
import type { Telemetry } from './telemetry.ts';

/** Header values as bytes; keys are short ASCII. */
export type Headers = Readonly<Record<string, Buffer>>;

export interface OutboundRecord {
  topic: string;
  /** Always chosen by the sender: a client's retry must never move a record to another partition. */
  partition: number;
  key: Buffer | null;
  /** null is a tombstone. */
  value: Buffer | null;
  headers?: Headers;
}

export interface InboundRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The broker's append time (LogAppendTime), ms since the epoch on the broker's clock. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Headers;
  /** The assignment under which it was delivered. An acknowledgement under an older assignment is ignored. */
  readonly assignment: number;
  /** Present where nothing of the record can be read: key and value are then null, and it is no tombstone. Readers without a group are given it only where they ask. */
  readonly unreadable?: Unreadable;
}

/** A batch of records that is refused as a whole: it unpacks to more than a consumer can take, or to what are no records. */
export interface Unreadable {
  readonly code: Extract<ErrorCode, 'TOO_LARGE' | 'MALFORMED'>;
  readonly reason: string;
  readonly firstOffset: number;
  /** Each offset of the batch is delivered, or, where they are very many, only the last. */
  readonly lastOffset: number;
  /** sha256 of the packed bytes, as hex. */
  readonly digest: string;
}

export interface TopicPartition {
  topic: string;
  partition: number;
}

/** Where reading starts when the group has committed nothing on a partition (or keeps no commits). */
export type StartAt = 'earliest' | 'latest';

export interface SubscribeOptions {
  /** The consumer group. */
  group: string;
  topics: readonly string[];
  startAt: StartAt;
  /**
   * A slot subscription: exactly these partitions of the only topic, all owned by one member of the group.
   * Other members stand by and take over when the owner leaves or dies. Without it the topics' partitions are
   * spread over the members by a sticky assigner: a join or leave moves as few partitions as it can.
   */
  slots?: readonly number[];
  /** Delivery of a partition stops while so many of its records are unacknowledged (default 1 000), or so many bytes (default 16 MiB). */
  unacknowledgedMax?: number;
  unacknowledgedBytesMax?: number;
}

export interface BroadcastOptions {
  topics: readonly string[];
  startAt: StartAt;
  /** Default: all partitions of the topics. */
  partitions?: readonly number[];
  /** For who counts what lies in a topic: records that are `unreadable` are delivered too. */
  unreadable?: 'delivered';
}

/**
 * What the subscriber promises and what it is promised:
 * - `onRecords` gets records of one partition, in offset order, each once per assignment. It must return quickly (it only
 *   enqueues); work goes on afterwards, in any order. It must not throw: where it does, the partition is lost (`onLost`), and what is not
 *   acknowledged of it is delivered again, after a while and under a new assignment.
 * - each record is acknowledged exactly once when its work is done *and* whatever came of it is itself acknowledged by the bus.
 *   The bus commits, per partition, the highest offset below which all are acknowledged, and nothing past it.
 * - `onRevoked` is called before partitions go away (rebalance, close). The bus waits for the promise (at most `drainTimeoutMs`
 *   of the adapter), commits what is contiguous, then lets go. After it resolved, nothing more of those partitions is delivered
 *   under that assignment; acknowledgements that come too late are ignored, so the next owner sees the record again.
 * - partitions that were lost without notice (session expired) are reported by `onLost`; nothing can be committed any more.
 * - a crash of the client is retried inside the adapter for ever, with back-off; `onError` is told, for logs and readiness.
 */
export interface Subscriber {
  onRecords(records: readonly InboundRecord[]): void;
  onAssigned?(partitions: readonly TopicPartition[]): void;
  onRevoked?(partitions: readonly TopicPartition[]): Promise<void>;
  onLost?(partitions: readonly TopicPartition[]): void;
  onError?(error: unknown): void;
}

export interface Subscription {
  acknowledge(record: InboundRecord): void;
  /** What this member owns now. */
  assigned(): readonly TopicPartition[];
  /** Milliseconds since the broker last answered a fetch (records or none); readiness fails when it is stale. */
  sinceLastFetchMs(): number;
  /** Stops delivery, drains through `onRevoked`, commits, leaves the group. Resolves when nothing more will be called. */
  close(): Promise<void>;
}

export interface Reader {
  /** Resolves when everything that lay in the partitions at the start of the reading has been delivered. */
  readonly caughtUp: Promise<void>;
  /** Delivers nothing more, but for a fetch of each partition that is under way, until `resume`; what is appended meanwhile waits at the broker. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

/** Values by Kafka's names. */
export type TopicConfig = Readonly<Record<string, string>>;

export interface TopicSpec {
  name: string;
  partitions: number;
  replication: number;
  config: TopicConfig;
}

export interface Watermarks {
  partition: number;
  /** First offset still kept. */
  low: number;
  /** Offset that the next record gets. */
  high: number;
}

export interface BusAdmin {
  /** Creates what is missing; answers the names created. Existing topics are left as they are. */
  createTopics(specs: readonly TopicSpec[]): Promise<readonly string[]>;
  /** Raises the number of partitions; never lowers it. */
  growTopic(topic: string, partitions: number): Promise<void>;
  /** The configuration in force of each topic that exists: its own values, and the broker's for the rest. */
  topicConfigs(topics: readonly string[]): Promise<ReadonlyMap<string, TopicConfig>>;
  /** Sets these values of a topic; its others stay. Whoever asks afterwards is told the new ones. */
  configureTopic(topic: string, config: TopicConfig): Promise<void>;
  deleteTopics(topics: readonly string[]): Promise<void>;
  listTopics(): Promise<readonly string[]>;
  watermarks(topic: string): Promise<readonly Watermarks[]>;
  /** Committed offset per partition, -1 where none. */
  committed(group: string, topic: string): Promise<ReadonlyMap<number, number>>;
}

/** Called with the offset at which a record was stored. It must not throw: where it does, that is a fault that ends the process. */
export type OnStored = (offset: number) => void;

/**
 * Kafka as millrace needs it. Adapters: kafkajs, @platformatic/kafka, memory.
 *
 * `produce` resolves when the record is stored by all in-sync replicas. While the broker is away, or refuses for a reason that passes
 * (not enough replicas, quota, leader election), it stays pending and the adapter keeps trying: that is the back-pressure. It rejects with
 * MillraceError TOO_LARGE, POISON (the topic will never take such a record, as one without a key where it is compacted) or BUS_UNAVAILABLE (after close, or an
 * unknown topic), never for a passing fault. Records of one partition are stored in the
 * order of the calls. Whoever wants to know the record's offset gets it in `onStored`, before the promise resolves, unless the broker does not tell.
 * An attempt whose answer was lost is made again and may be stored twice: the offset is that of the one which was answered. There is no linger: a batch is what gathered while the one before it was in flight.
 */
export interface MessageBus {
  produce(record: OutboundRecord, onStored?: OnStored): Promise<void>;
  /** Partitions of a topic, from metadata that is at most some seconds old. @throws MillraceError BUS_UNAVAILABLE where the topic does not exist. */
  partitionCount(topic: string): Promise<number>;
  /**
   * Resolves once the member has joined its group (it may own nothing yet, when others hold the slots). Nothing of the subscriber is called
   * before that. With `startAt: 'latest'` a partition that is assigned for the first time starts, and is committed, where its end was then.
   */
  subscribe(options: SubscribeOptions, subscriber: Subscriber): Promise<Subscription>;
  /**
   * Reads partitions without a group and without commits. Once the promise resolves, every record appended later will be
   * delivered (`latest`), or every record kept, from the first on (`earliest`). Delivery survives broker restarts.
   */
  read(options: BroadcastOptions, onRecords: (records: readonly InboundRecord[]) => void): Promise<Reader>;
  readonly admin: BusAdmin;
  /** Waits for what was produced, closes subscriptions and connections. */
  close(): Promise<void>;
}

export interface BusOptions {
  clientId: string;
  /** How long a revoked partition may drain. */
  drainTimeoutMs: number;
  /** How soon a dead member's partitions go to another; Kafka allows 6 000 and up by default. */
  sessionTimeoutMs: number;
  telemetry: Telemetry;
}
