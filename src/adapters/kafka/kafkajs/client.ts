import kafkajs, {
  type Admin,
  type ConfigEntries,
  type Kafka,
  type KafkaConfig,
  type RetryOptions,
  type SASLOptions,
} from 'kafkajs';
import { MillraceError } from '../../../core/errors.ts';
import { missingTopic } from '../../../core/missing-topic.ts';
import type { TopicConfig, TopicSpec, Watermarks } from '../../../ports/message-bus.ts';
import type { Logger } from '../../../ports/telemetry.ts';
import { awaitLeaders } from '../await-leaders.ts';
import { backoffMs, TIMERS } from '../backoff.ts';
import type {
  KafkaClient,
  PartitionBatch,
  SendOutcome,
  Session,
  SessionListener,
  SessionOptions,
} from '../client.ts';
import type { ClientOptions, SaslOptions } from '../options.ts';
import { registerCodecs } from './compression.ts';
import { logCreator } from './logging.ts';
import { adoptClient, applyPatches } from './patches.ts';
import { KafkaJsSender } from './sender.ts';
import { KafkaJsSession } from './session.ts';

const CONNECT_TIMEOUT_MS = 3_000;
/** Calls that the adapter itself makes again need not be patient. */
const RETRY = { initialRetryTime: 50, multiplier: 2, factor: 0.2, maxRetryTime: 1_000, retries: 4 };
/** A consumer that waits some 30 s for its broker is still a member when it comes back; one that crashed has to wait until its old self is out. */
const PATIENT_RETRY = { initialRetryTime: 100, multiplier: 1.5, factor: 0.2, maxRetryTime: 500, retries: 60 };
/** Kafka's DYNAMIC_TOPIC_CONFIG. */
const OWN_VALUE = 1;

/** A new coordinator is found within seconds of the old one's death. */
const COORDINATOR_ATTEMPTS_MAX = 12;
const COORDINATOR_WAIT_MS = { first: 50, most: 2_000 };

/** kafkajs 2.2.4, patched, as the client of the bus. */
export class KafkaJsClient implements KafkaClient {
  readonly #config: KafkaConfig;
  readonly #sender: KafkaJsSender;
  #admin: Promise<Admin> | undefined;
  #isClosed = false;

  constructor(options: ClientOptions, logger: Logger) {
    applyPatches();
    registerCodecs();
    this.#config = toConfig(options, logger);
    this.#sender = new KafkaJsSender(this.#newKafka(), options);
  }

  async connect(): Promise<void> {
    await this.#withAdmin((admin) => admin.describeCluster());
  }

  async leaders(topics: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>> {
    const { topics: described } = await this.#withAdmin((admin) =>
      admin.fetchTopicMetadata({ topics: [...topics] }),
    );
    const leaders = new Map<string, number[]>();
    for (const { name, partitions } of described) {
      if (partitions.length === 0) continue;
      const byPartition = new Array<number>(partitions.length).fill(-1);
      for (const { partitionId, leader } of partitions) byPartition[partitionId] = leader;
      leaders.set(name, byPartition);
    }
    return leaders;
  }

  send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    return this.#sender.send(batches);
  }

  resetSending(): Promise<void> {
    return this.#sender.reset();
  }

  async openSession(options: SessionOptions, listener: SessionListener): Promise<Session> {
    // A client of its own: members that share one also share kafkajs's cache of the group's offsets, and clear it for each other.
    const session = new KafkaJsSession(this.#newKafka(PATIENT_RETRY), options, listener);
    await session.open();
    return session;
  }

  async createTopic({ name, partitions, replication, config }: TopicSpec): Promise<boolean> {
    const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
    const topic = { topic: name, numPartitions: partitions, replicationFactor: replication, configEntries };
    const isNew = await this.#withAdmin((admin) =>
      admin.createTopics({ topics: [topic], waitForLeaders: false }),
    );
    await awaitLeaders(this, name, partitions);
    return isNew;
  }

  async growTopic(topic: string, partitions: number): Promise<void> {
    await this.#withAdmin((admin) =>
      admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] }),
    );
    await awaitLeaders(this, topic, partitions);
  }

  async topicConfigs(topics: readonly string[]): Promise<ReadonlyMap<string, TopicConfig>> {
    const described = await this.#describeConfigs(topics);
    return new Map([...described].map(([topic, entries]) => [topic, toConfigValues(entries)]));
  }

  /** kafkajs has the old request only, which sets all of a topic's own values: those that it has go along. */
  async configureTopic(topic: string, config: TopicConfig): Promise<void> {
    const entries = (await this.#describeConfigs([topic])).get(topic) ?? [];
    const own = toConfigValues(entries.filter(({ configSource }) => configSource === OWN_VALUE));
    const configEntries = Object.entries({ ...own, ...config }).map(([name, value]) => ({ name, value }));
    await this.#withAdmin((admin) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }],
      }),
    );
  }

  async #describeConfigs(topics: readonly string[]): Promise<ReadonlyMap<string, readonly ConfigEntries[]>> {
    const resources = topics.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name }));
    const described = await this.#withAdmin((admin) =>
      admin.describeConfigs({ resources, includeSynonyms: false }),
    );
    return new Map(described.resources.map((each) => [each.resourceName, each.configEntries]));
  }

  async deleteTopics(topics: readonly string[]): Promise<void> {
    const existing = new Set(await this.listTopics());
    const present = topics.filter((topic) => existing.has(topic));
    if (present.length > 0) await this.#withAdmin((admin) => admin.deleteTopics({ topics: present }));
  }

  listTopics(): Promise<readonly string[]> {
    return this.#withAdmin((admin) => admin.listTopics());
  }

  async watermarks(topic: string): Promise<readonly Watermarks[]> {
    // kafkajs stumbles over one that nobody knows.
    if (!(await this.leaders([topic])).has(topic)) throw missingTopic(topic);
    const offsets = await this.#withAdmin((admin) => admin.fetchTopicOffsets(topic));
    return offsets
      .map(({ partition, low, high }) => ({ partition, low: Number(low), high: Number(high) }))
      .sort((a, b) => a.partition - b.partition);
  }

  async committed(group: string, topic: string): Promise<ReadonlyMap<number, number>> {
    const topics = await whileCoordinatorMoves(() =>
      this.#withAdmin((admin) => admin.fetchOffsets({ groupId: group, topics: [topic] })),
    );
    const partitions = topics.flatMap(({ partitions }) => partitions);
    return new Map(
      partitions
        .sort((a, b) => a.partition - b.partition)
        .map(({ partition, offset }) => [partition, Number(offset)]),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const admin = this.#admin;
    this.#admin = undefined;
    const closeAdmin = admin?.then(
      (each) => each.disconnect(),
      () => undefined,
    );
    await Promise.all([this.#sender.close(), closeAdmin]);
  }

  #newKafka(retry: RetryOptions = RETRY): Kafka {
    const kafka = new kafkajs.Kafka({ ...this.#config, retry });
    adoptClient(kafka.logger());
    return kafka;
  }

  /** A failed call throws the admin's connections away: kafkajs keeps using some that are long gone. */
  async #withAdmin<T>(call: (admin: Admin) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new MillraceError('BUS_UNAVAILABLE', 'The bus is closed');
    this.#admin ??= this.#connectAdmin();
    const admin = this.#admin;
    try {
      return await call(await admin);
    } catch (error) {
      if (this.#admin === admin) {
        this.#admin = undefined;
        void admin.then((each) => each.disconnect()).catch(() => undefined);
      }
      throw error;
    }
  }

  async #connectAdmin(): Promise<Admin> {
    const admin = this.#newKafka().admin({ retry: RETRY });
    await admin.connect();
    return admin;
  }
}

function toConfigValues(entries: readonly ConfigEntries[]): TopicConfig {
  return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]));
}

/** Who leads a group changes with its broker; kafkajs asks whom it knew, once, and says that it no longer does. */
async function whileCoordinatorMoves<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const isPassing = error instanceof kafkajs.KafkaJSError && error.retriable;
      if (!isPassing || attempt === COORDINATOR_ATTEMPTS_MAX) throw error;
      const waitMs = backoffMs(attempt, COORDINATOR_WAIT_MS.first, COORDINATOR_WAIT_MS.most);
      await new Promise<void>((resolve) => TIMERS.after(waitMs, resolve));
    }
  }
}

function toConfig(options: ClientOptions, logger: Logger): KafkaConfig {
  const { clientId, brokers, tls, sasl, requestTimeoutMs } = options;
  return {
    clientId,
    brokers: [...brokers],
    connectionTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: requestTimeoutMs,
    logLevel: kafkajs.logLevel.INFO,
    logCreator: logCreator(logger.child({ component: 'kafkajs' })),
    ...(tls === undefined ? {} : { ssl: tls }),
    ...(sasl === undefined ? {} : { sasl: toSasl(sasl) }),
  };
}

function toSasl(sasl: SaslOptions): SASLOptions {
  if (sasl.mechanism !== 'oauthbearer') return sasl;
  const { mechanism, token } = sasl;
  return { mechanism, oauthBearerProvider: async () => ({ value: await token() }) };
}
