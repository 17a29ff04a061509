import type {
  InboundRecord,
  OutboundRecord,
  TopicConfig,
  TopicPartition,
  TopicSpec,
  Watermarks,
} from '../../ports/message-bus.ts';
import type { Claims } from './claims.ts';

/**
 * What the bus needs of a Kafka client library. Everything that makes the port's promises (order, batching, retries for ever,
 * contiguous commits, draining, back-pressure) stands above this line and is the same for every library.
 */
export interface KafkaClient {
  /** Rejects when no broker answers. */
  connect(): Promise<void>;
  /** The leader of each partition (-1 where there is none just now), for those topics that exist. */
  leaders(topics: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>>;
  /**
   * One attempt, no retries inside. Answers one outcome per batch, in order; rejects when nothing is known of any of them
   * (connection lost, time-out): they may be stored or not.
   */
  send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]>;
  /** Throws away what connections the sending has and opens new ones with the next batch. */
  resetSending(): Promise<void>;
  /** Joins, and resolves when `onJoined` has been called for the first time. Rejects when that fails; the session is then over. */
  openSession(options: SessionOptions, listener: SessionListener): Promise<Session>;
  /** Creates a topic and waits until each partition has a leader. False where it existed already. */
  createTopic(spec: TopicSpec): Promise<boolean>;
  growTopic(topic: string, partitions: number): Promise<void>;
  /** Of topics that exist. */
  topicConfigs(topics: readonly string[]): Promise<ReadonlyMap<string, TopicConfig>>;
  configureTopic(topic: string, config: TopicConfig): Promise<void>;
  /** Topics that do not exist are passed over. */
  deleteTopics(topics: readonly string[]): Promise<void>;
  listTopics(): Promise<readonly string[]>;
  watermarks(topic: string): Promise<readonly Watermarks[]>;
  /** Committed offset per partition, -1 where none. */
  committed(group: string, topic: string): Promise<ReadonlyMap<number, number>>;
  close(): Promise<void>;
}

/** Records of one partition that travel together. */
export interface PartitionBatch {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly OutboundRecord[];
}

export type SendOutcome =
  /** `baseOffset` is that of the first record, -1 where the broker does not tell. */
  | { readonly status: 'stored'; readonly baseOffset: number }
  /** Refused for a reason that passes: not enough replicas, election, quota, a topic that the broker does not know (yet), … */
  | { readonly status: 'delayed'; readonly error: unknown }
  /** The batch or one of its records is above the topic's or the broker's limit. */
  | { readonly status: 'too-large'; readonly error: unknown }
  /** The broker will never take the batch as it is: one of its records is invalid (no key on a compacted topic, …). */
  | { readonly status: 'invalid'; readonly error: unknown };

/** How a session comes to its partitions. */
export type Membership =
  | { readonly kind: 'spread' }
  | { readonly kind: 'slots'; readonly slots: readonly number[] }
  /** Alone, without a group that anybody else is in, and without commits. */
  | { readonly kind: 'reader'; readonly partitions?: readonly number[] };

export interface SessionOptions {
  group: string;
  topics: readonly string[];
  membership: Membership;
  sessionTimeoutMs: number;
  /** How long the other members wait for one that does not join again. */
  rebalanceTimeoutMs: number;
}

export interface Joined {
  /** A new id means that the group gave this member up in the meantime. */
  memberId: string;
  /** Rises with every agreement of the group. */
  generation: number;
  partitions: readonly TopicPartition[];
}

export interface PartitionOffset extends TopicPartition {
  offset: number;
}

/** One life of a consumer, from its joining until it is closed or crashes. */
export interface Session {
  /** Fetches go on at `offset`. Records fetched from elsewhere are no longer delivered. */
  seek(partition: TopicPartition, offset: number): void;
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  /** Commits under the generation that was current when it was called; the broker refuses it once that is over. */
  commit(offsets: readonly PartitionOffset[]): Promise<void>;
  /** Asks the group for a new assignment, after claims changed. */
  rejoin(): void;
  /** Milliseconds since the broker last answered a fetch, or a heartbeat where there is nothing to fetch. */
  sinceContactMs(): number;
  /** Leaves the group. Nothing is called afterwards. */
  close(): Promise<void>;
}

/** Called synchronously by a session. */
export interface SessionListener {
  /** What the member owns now, for the group's leader. */
  claims(): Claims;
  /** The group agreed. Partitions are fetched only from where `seek` put them, so that must happen in this call (or `pause`). */
  onJoined(session: Session, joined: Joined): void;
  /** The assignment number of records fetched at `offset`; undefined where they are not what comes next, and must not be delivered. */
  admit(partition: TopicPartition, offset: number): number | undefined;
  /** Where the partition goes on, for a session that found its position lost; undefined where it is not ours. */
  positionOf(partition: TopicPartition): number | undefined;
  /** A fetch that was admitted; `position` is the offset after it. */
  onFetched(partition: TopicPartition, records: InboundRecord[], position: number): void;
  /** The broker has nothing at the partition's position any more. The partition stays paused until it is sought. */
  onOutOfRange(partition: TopicPartition): void;
  /** The session is over, whatever the reason. */
  onCrashed(session: Session, error: unknown): void;
}
