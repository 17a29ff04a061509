/** What one topic carries in the busiest second that was measured. */
export interface TopicLoad {
  readonly topic: string;
  readonly recordsPerSecond: number;
  /** Key, value, headers and what Kafka adds to a record, without compression. */
  readonly inBytesPerSecond: number;
  /** What all readers took together. */
  readonly outBytesPerSecond: number;
  /** Of a dispatch topic, whose partitions are the slots of its pool; 0 of any other. */
  readonly slots: number;
  /** A reader more for each process more: what is read then grows with the square of the load. */
  readonly isReadByAll: boolean;
}

export interface ClusterLoad {
  readonly topics: readonly TopicLoad[];
  /** Operations of the control store. */
  readonly redisPerSecond: number;
}

/** What is taken for granted of the cluster. */
export interface KafkaAssumptions {
  /** Copies of each record, the leader's included. */
  readonly replication: number;
  /** Bytes a second that may come into one partition. */
  readonly partitionBytesPerSecond: number;
  /** Bytes a second that a broker may write, copies for others included, and may send, to readers and to followers. */
  readonly brokerWrittenBytesPerSecond: number;
  readonly brokerSentBytesPerSecond: number;
  /** Partitions of a broker, as leader or as follower. */
  readonly brokerPartitions: number;
  /** Share of all these that stays free, 0 … below 1. */
  readonly headroom: number;
}

/** What a cluster for the load must be. Plain JSON; bytes and records are per second, in the busiest one. */
export interface KafkaPlan {
  /** Times the load that was simulated, of traffic and of the fleet. */
  readonly scale: number;
  readonly assumptions: KafkaAssumptions;
  readonly topics: readonly TopicPlan[];
  readonly writtenBytesPerSecond: number;
  readonly sentBytesPerSecond: number;
  readonly partitions: number;
  readonly brokers: number;
  /** Why it is that many brokers. */
  readonly brokersFor: 'copies' | 'written' | 'sent' | 'partitions';
  readonly redisPerSecond: number;
}

export interface TopicPlan {
  readonly topic: string;
  readonly recordsPerSecond: number;
  readonly inBytesPerSecond: number;
  readonly outBytesPerSecond: number;
  /** With all copies. */
  readonly writtenBytesPerSecond: number;
  /** To readers, and to the brokers that hold the copies. */
  readonly sentBytesPerSecond: number;
  readonly partitions: number;
}

/** Partitions and brokers for a load: each is what its tightest limit asks for. Never less than one partition a topic, and one broker a copy. */
export function planKafka(
  { topics: loads, redisPerSecond }: ClusterLoad,
  scale: number,
  assumptions: KafkaAssumptions,
): KafkaPlan {
  const topics = loads.map((load) => planTopic(load, scale, assumptions));
  const total = (of: (topic: TopicPlan) => number): number =>
    topics.reduce((sum, topic) => sum + of(topic), 0);
  const written = total(({ writtenBytesPerSecond }) => writtenBytesPerSecond);
  const sent = total(({ sentBytesPerSecond }) => sentBytesPerSecond);
  const partitions = total((topic) => topic.partitions);
  const { replication, headroom, brokerPartitions } = assumptions;
  const wanted = [
    { brokersFor: 'copies', brokers: replication },
    { brokersFor: 'written', brokers: needed(written, assumptions.brokerWrittenBytesPerSecond, headroom) },
    { brokersFor: 'sent', brokers: needed(sent, assumptions.brokerSentBytesPerSecond, headroom) },
    { brokersFor: 'partitions', brokers: needed(partitions * replication, brokerPartitions, headroom) },
  ] as const;
  const most = wanted.reduce((tightest, each) => (each.brokers > tightest.brokers ? each : tightest));
  return {
    ...{ scale, assumptions, topics, redisPerSecond: redisPerSecond * scale },
    ...{ writtenBytesPerSecond: written, sentBytesPerSecond: sent, partitions, ...most },
  };
}

function planTopic(load: TopicLoad, scale: number, assumptions: KafkaAssumptions): TopicPlan {
  const { replication, partitionBytesPerSecond, headroom } = assumptions;
  const inBytes = load.inBytesPerSecond * scale;
  const outBytes = load.outBytesPerSecond * scale * (load.isReadByAll ? Math.max(1, scale) : 1);
  return {
    topic: load.topic,
    recordsPerSecond: load.recordsPerSecond * scale,
    inBytesPerSecond: inBytes,
    outBytesPerSecond: outBytes,
    writtenBytesPerSecond: inBytes * replication,
    sentBytesPerSecond: outBytes + inBytes * (replication - 1),
    partitions: Math.max(needed(inBytes, partitionBytesPerSecond, headroom), Math.ceil(load.slots * scale)),
  };
}

function needed(load: number, each: number, headroom: number): number {
  return Math.max(1, Math.ceil(load / (each * (1 - headroom))));
}
