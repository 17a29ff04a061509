import type { Clock } from '../../ports/clock.ts';
import type { BusOptions } from '../../ports/message-bus.ts';
import { Broker, type TopicTraffic } from './broker.ts';
import { Connection, type MemoryConnection } from './connection.ts';

export type { TopicTraffic } from './broker.ts';
export type { MemoryConnection } from './connection.ts';

export interface MemoryBrokerOptions {
  clock: Clock;
  /** From the append of a record to its delivery; default 0, which still is another turn of the clock. */
  deliveryDelayMs?: number;
  /** What a topic keeps at most over all its partitions, whatever its retention says; default 64 MiB. */
  topicBytesMax?: number;
}

/**
 * Kafka's semantics in memory. Everything happens on the given clock, so that a run in virtual time is the same each time. Bytes are copied when a
 * record is appended; those that are delivered are the log's own, shared by all its readers: nobody may write to them.
 */
export interface MemoryBroker {
  connect(options: BusOptions): MemoryConnection;
  /** Like a broker that goes down: logs and commits stay, everything that needs it waits for `start`. */
  stop(): void;
  start(): void;
  /** Records for the topic stay pending, as with too few in-sync replicas or an exhausted quota, until `accept`. */
  refuse(topic: string): void;
  accept(topic: string): void;
  /** Compacts a topic now: the last record of each key stays, and tombstones for their `delete.retention.ms`. */
  compact(topic: string): void;
  /** What each topic has carried since it was created. */
  traffic(): ReadonlyMap<string, TopicTraffic>;
}

const TOPIC_BYTES_MAX = 64 * 2 ** 20;

export function memoryBroker(options: MemoryBrokerOptions): MemoryBroker {
  const broker = new Broker(options.clock, options.topicBytesMax ?? TOPIC_BYTES_MAX);
  return {
    connect: (busOptions) => new Connection(broker, busOptions, options.deliveryDelayMs ?? 0),
    stop: () => broker.stop(),
    start: () => broker.start(),
    refuse: (topic) => broker.refuse(topic),
    accept: (topic) => broker.accept(topic),
    compact: (topic) => broker.compact(topic),
    traffic: () => broker.traffic(),
  };
}
