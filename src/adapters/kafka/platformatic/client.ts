import {
  Admin,
  ConfigResourceTypes,
  findErrorBy,
  IncrementalAlterConfigOperationTypes,
  ListOffsetTimestamps,
  type listOffsetsV9,
} from '@platformatic/kafka';
import { missingTopic } from '../../../core/missing-topic.ts';
import type { TopicConfig, TopicSpec, Watermarks } from '../../../ports/message-bus.ts';
import type { Logger } from '../../../ports/telemetry.ts';
import { awaitLeaders } from '../await-leaders.ts';
import type {
  KafkaClient,
  PartitionBatch,
  SendOutcome,
  Session,
  SessionListener,
  SessionOptions,
} from '../client.ts';
import type { ClientOptions } from '../options.ts';
import { PartitionTable } from '../partition-table.ts';
import { Cluster, toBaseOptions } from './cluster.ts';
import { PlatformaticSender } from './sender.ts';
import { GroupSession, ReaderSession } from './session.ts';

const ANY_REPLICA = -1;
const READ_UNCOMMITTED = 0;
const ADMIN_RETRIES = 3;
const ADMIN_RETRY_DELAY_MS = 100;

/** @platformatic/kafka as the client of the bus. */
export class PlatformaticClient implements KafkaClient {
  readonly #options: ClientOptions;
  readonly #logger: Logger;
  readonly #cluster: Cluster;
  readonly #sender: PlatformaticSender;
  readonly #admin: Admin;

  constructor(options: ClientOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger.child({ component: 'platformatic-kafka' });
    this.#cluster = new Cluster(options);
    this.#sender = new PlatformaticSender(this.#cluster, options);
    this.#admin = new Admin({
      ...toBaseOptions(options, options.requestTimeoutMs),
      retries: ADMIN_RETRIES,
      retryDelay: ADMIN_RETRY_DELAY_MS,
    });
  }

  async connect(): Promise<void> {
    await this.#cluster.describe([]);
  }

  async leaders(topics: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>> {
    const described = await this.#cluster.describe(topics);
    return new Map([...described].map(([name, { leaders }]) => [name, leaders]));
  }

  send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    return this.#sender.send(batches);
  }

  /** Connections that failed are gone already. */
  async resetSending(): Promise<void> {}

  async openSession(options: SessionOptions, listener: SessionListener): Promise<Session> {
    const context = { client: this.#options, session: options, listener, logger: this.#logger };
    const session =
      options.membership.kind === 'reader' ? new ReaderSession(context) : new GroupSession(context);
    await session.open();
    return session;
  }

  async createTopic({ name, partitions, replication, config }: TopicSpec): Promise<boolean> {
    const configs = Object.entries(config).map(([key, value]) => ({ name: key, value }));
    let isNew = true;
    try {
      await this.#admin.createTopics({
        topics: [{ topic: name, partitions, replicas: replication }],
        configs,
      });
    } catch (error) {
      if (!has(error, 'TOPIC_ALREADY_EXISTS')) throw error;
      isNew = false;
    }
    await awaitLeaders(this, name, partitions);
    return isNew;
  }

  async growTopic(topic: string, partitions: number): Promise<void> {
    await this.#admin.createPartitions({ topics: [{ name: topic, count: partitions, assignments: null }] });
    await awaitLeaders(this, topic, partitions);
  }

  async topicConfigs(topics: readonly string[]): Promise<ReadonlyMap<string, TopicConfig>> {
    const resources = topics.map((resourceName) => ({
      resourceType: ConfigResourceTypes.TOPIC,
      resourceName,
    }));
    const described = await this.#admin.describeConfigs({ resources });
    return new Map(described.map(({ resourceName, configs }) => [resourceName, toConfigValues(configs)]));
  }

  async configureTopic(topic: string, config: TopicConfig): Promise<void> {
    const configs = Object.entries(config).map(([name, value]) => ({
      name,
      value,
      configOperation: IncrementalAlterConfigOperationTypes.SET,
    }));
    await this.#admin.incrementalAlterConfigs({
      resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }],
    });
  }

  async deleteTopics(topics: readonly string[]): Promise<void> {
    const existing = new Set(await this.listTopics());
    const present = topics.filter((topic) => existing.has(topic));
    if (present.length > 0) await this.#admin.deleteTopics({ topics: present });
  }

  listTopics(): Promise<readonly string[]> {
    return this.#admin.listTopics();
  }

  async watermarks(topic: string): Promise<readonly Watermarks[]> {
    const described = (await this.#cluster.describe([topic])).get(topic);
    if (described === undefined) throw missingTopic(topic);
    const [low, high] = await Promise.all([
      this.#listOffsets(topic, described.leaders, ListOffsetTimestamps.EARLIEST),
      this.#listOffsets(topic, described.leaders, ListOffsetTimestamps.LATEST),
    ]);
    return described.leaders.map((_, partition) => ({
      partition,
      low: low.get(topic, partition) ?? 0,
      high: high.get(topic, partition) ?? 0,
    }));
  }

  async committed(group: string, topic: string): Promise<ReadonlyMap<number, number>> {
    const count = (await this.#cluster.describe([topic])).get(topic)?.leaders.length ?? 0;
    const committed = new Map(Array.from({ length: count }, (_, partition) => [partition, -1]));
    if (count === 0) return committed;
    const partitionIndexes = [...committed.keys()];
    const groups = await this.#admin.listConsumerGroupOffsets({
      groups: [{ groupId: group, topics: [{ name: topic, partitionIndexes }] }],
    });
    for (const { partitions } of groups.flatMap(({ topics }) => topics)) {
      for (const { partitionIndex, committedOffset } of partitions)
        committed.set(partitionIndex, Number(committedOffset));
    }
    return committed;
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#cluster.close(), this.#admin.close()]);
  }

  async #listOffsets(
    topic: string,
    leaders: readonly number[],
    timestamp: bigint,
  ): Promise<PartitionTable<number>> {
    const offsets = new PartitionTable<number>();
    const byLeader = Map.groupBy(leaders.keys(), (partition) => leaders[partition] ?? -1);
    await Promise.all(
      [...byLeader].map(async ([leader, own]) => {
        const partitions = own.map((partitionIndex) => ({
          partitionIndex,
          currentLeaderEpoch: -1,
          timestamp,
        }));
        const { topics } = await this.#cluster.request<listOffsetsV9.ListOffsetsResponse>(
          leader,
          'ListOffsets',
          ANY_REPLICA,
          READ_UNCOMMITTED,
          [{ name: topic, partitions }],
        );
        for (const each of topics) {
          for (const { partitionIndex, offset } of each.partitions)
            offsets.set(each.name, partitionIndex, Number(offset));
        }
      }),
    );
    return offsets;
  }
}

function has(error: unknown, id: string): boolean {
  return error instanceof Error && findErrorBy(error, 'apiId', id) !== null;
}

function toConfigValues(
  configs: readonly { name: string; value?: string | null | undefined }[],
): TopicConfig {
  return Object.fromEntries(configs.map(({ name, value }) => [name, value ?? '']));
}
