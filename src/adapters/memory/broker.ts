import { missingTopic } from '../../core/missing-topic.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OutboundRecord, TopicSpec, Watermarks } from '../../ports/message-bus.ts';
import { Group, type GroupSurroundings } from './group.ts';
import { Topic } from './topic.ts';

/** What a topic has carried: bytes of keys, values, headers and what Kafka adds; out, to all readers together. */
export interface TopicTraffic {
  readonly records: number;
  readonly inBytes: number;
  readonly outBytes: number;
}

/** A client as the broker sees it. */
export interface BrokerClient {
  brokerStopped(): void;
  brokerStarted(): void;
  topicGrew(topic: Topic): void;
  /** A topic that refused records takes them again. */
  topicAccepts(): void;
}

/** The logs, and the groups that read them: everything that outlives a client. */
export class Broker implements GroupSurroundings {
  readonly clock: Clock;
  readonly clients = new Set<BrokerClient>();
  readonly #topicBytesMax: number;
  readonly #topics = new Map<string, Topic>();
  readonly #groups = new Map<string, Group>();
  readonly #refusing = new Set<string>();
  #running = true;
  #assignments = 0;

  constructor(clock: Clock, topicBytesMax: number) {
    this.clock = clock;
    this.#topicBytesMax = topicBytesMax;
  }

  get running(): boolean {
    return this.#running;
  }

  stop(): void {
    this.#running = false;
    for (const client of this.clients) client.brokerStopped();
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    for (const client of this.clients) client.brokerStarted();
  }

  refuse(topic: string): void {
    this.#refusing.add(topic);
  }

  accept(topic: string): void {
    this.#refusing.delete(topic);
    for (const client of this.clients) client.topicAccepts();
  }

  /** @returns the record's offset; undefined while the topic refuses records. @throws MillraceError TOO_LARGE, BUS_UNAVAILABLE */
  append(record: OutboundRecord): number | undefined {
    const topic = this.topic(record.topic);
    if (this.#refusing.has(record.topic)) return undefined;
    return topic.append(record, this.clock.wallMs(), this.clock.monotonicMs());
  }

  findTopic(name: string): Topic | undefined {
    return this.#topics.get(name);
  }

  /** @throws MillraceError BUS_UNAVAILABLE where the topic does not exist. */
  topic(name: string): Topic {
    const topic = this.#topics.get(name);
    if (topic !== undefined) return topic;
    throw missingTopic(name);
  }

  /** Since each topic was created. */
  traffic(): Map<string, TopicTraffic> {
    const sum = ({ partitions }: Topic, of: (log: Topic['partitions'][number]) => number): number =>
      partitions.reduce((total, log) => total + of(log), 0);
    return new Map(
      [...this.#topics].map(([name, topic]) => [
        name,
        {
          records: sum(topic, ({ high }) => high),
          inBytes: sum(topic, ({ inBytes }) => inBytes),
          outBytes: sum(topic, ({ outBytes }) => outBytes),
        },
      ]),
    );
  }

  topicNames(): string[] {
    return [...this.#topics.keys()].sort();
  }

  /** @returns whether it had to be created. */
  createTopic(spec: TopicSpec): boolean {
    if (this.#topics.has(spec.name)) return false;
    this.#topics.set(spec.name, new Topic(spec, this.#topicBytesMax));
    for (const group of this.#groups.values()) group.rebalanceSoon();
    return true;
  }

  growTopic(name: string, partitions: number): void {
    const topic = this.topic(name);
    if (partitions <= topic.partitions.length) return;
    topic.grow(partitions);
    for (const group of this.#groups.values()) group.rebalanceSoon();
    for (const client of this.clients) client.topicGrew(topic);
  }

  deleteTopic(name: string): void {
    if (!this.#topics.delete(name)) return;
    for (const group of this.#groups.values()) group.forget(name);
  }

  watermarks(name: string): Watermarks[] {
    return this.currentTopic(name).watermarks();
  }

  /** The topic without what its retention no longer keeps. */
  currentTopic(name: string): Topic {
    const topic = this.topic(name);
    topic.expire(this.clock.monotonicMs());
    return topic;
  }

  compact(name: string): void {
    this.topic(name).compact(this.clock.monotonicMs());
  }

  group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = new Group(name, this);
      this.#groups.set(name, group);
    }
    return group;
  }

  /** Committed offset per partition, -1 where none. */
  committed(groupName: string, topicName: string): Map<number, number> {
    const group = this.#groups.get(groupName);
    const partitions = [...this.topic(topicName).partitions.keys()];
    return new Map(partitions.map((partition) => [partition, group?.committed(topicName, partition) ?? -1]));
  }

  nextAssignment(): number {
    this.#assignments++;
    return this.#assignments;
  }
}
