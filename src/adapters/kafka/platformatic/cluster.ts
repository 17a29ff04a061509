import {
  type API,
  Base,
  type BaseOptions,
  type Broker,
  type Connection,
  type findCoordinatorV6,
  kGetApi,
  kGetBootstrapConnection,
  type metadataV12,
  ResponseError,
  type SASLOptions,
} from '@platformatic/kafka';
import { within } from '../../../ports/within.ts';
import { TIMERS } from '../backoff.ts';
import type { ClientOptions, SaslOptions } from '../options.ts';
import { fetchFrom } from './fetch.ts';

type MetadataResponse = metadataV12.MetadataResponse;

const CONNECT_TIMEOUT_MS = 3_000;
const GRACE_MS = 1_000;
const GROUP_KEY_TYPE = 0;
const LATE = Symbol('late');

/** A topic as the cluster describes it. */
export interface TopicDescription {
  /** What fetches name it by. */
  id: string;
  /** Leader per partition, -1 where there is none just now. */
  leaders: readonly number[];
}

/**
 * Connections to a cluster, one per broker, over which requests are made one attempt at a time. @platformatic/kafka gives the protocol (encoding,
 * connections, TLS, SASL, version negotiation); its Producer and Consumer are not used: they put a record into another partition than
 * the one named when their metadata is old, and a commit that is refused joins the group again and commits under the new generation.
 */
export class Cluster {
  readonly #options: BaseOptions;
  readonly #answerTimeoutMs: number;
  #base: Base;
  readonly #brokers = new Map<number, Broker>();
  readonly #topics = new Map<string, TopicDescription>();

  /** @param answerTimeoutMs How long a request may go unanswered: a join is answered when all have joined. */
  constructor(options: ClientOptions, answerTimeoutMs = options.requestTimeoutMs) {
    this.#options = toBaseOptions(options, answerTimeoutMs);
    this.#answerTimeoutMs = answerTimeoutMs;
    this.#base = new Base(this.#options);
  }

  /** As it was described last. */
  topic(name: string): TopicDescription | undefined {
    return this.#topics.get(name);
  }

  /** Asks any broker; answers the topics that exist. */
  async describe(topics: readonly string[]): Promise<ReadonlyMap<string, TopicDescription>> {
    const response = await this.#metadata([...topics]);
    this.#brokers.clear();
    for (const { nodeId, host, port } of response.brokers) this.#brokers.set(nodeId, { host, port });
    const described = new Map<string, TopicDescription>();
    for (const { name, topicId, partitions } of response.topics) {
      if (name == null || partitions.length === 0) continue;
      const leaders = new Array<number>(partitions.length).fill(-1);
      for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = leaderId;
      described.set(name, { id: topicId ?? name, leaders });
    }
    for (const name of topics) this.#topics.delete(name);
    for (const [name, topic] of described) this.#topics.set(name, topic);
    return described;
  }

  /** The node that coordinates a group. */
  async findCoordinator(group: string): Promise<number> {
    const { coordinators } = await this.requestAny<findCoordinatorV6.FindCoordinatorResponse>(
      'FindCoordinator',
      GROUP_KEY_TYPE,
      [group],
    );
    const [coordinator] = coordinators;
    if (coordinator === undefined) throw new Error(`no broker coordinates ${group}`);
    const { nodeId, host, port } = coordinator;
    this.#brokers.set(nodeId, { host, port });
    return nodeId;
  }

  /** One request to one broker, in the highest version that both sides know. Rejects with ResponseError where the answer has an error in it. */
  async request<Response>(node: number, api: string, ...args: unknown[]): Promise<Response> {
    const broker = this.#brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not known`);
    return this.#inTime(async () => {
      const connection = await this.#base.connections.get(broker);
      return this.#call<Response>(connection as Connection, api, args);
    });
  }

  close(): Promise<void> {
    return this.#base.close();
  }

  /** Topics that are unknown or without a leader make an error of the answer, which is in it. */
  async #metadata(topics: string[]): Promise<MetadataResponse> {
    try {
      return await this.requestAny<MetadataResponse>('Metadata', topics, false, false);
    } catch (error) {
      const response = responseOf<MetadataResponse>(error);
      if (response === undefined) throw error;
      return response;
    }
  }

  /** One request to whichever broker answers. */
  async requestAny<Response>(api: string, ...args: unknown[]): Promise<Response> {
    return this.#inTime(async () => {
      const connection = await new Promise<Connection>((resolve, reject) => {
        this.#base[kGetBootstrapConnection]((error, found) =>
          error === null && found !== undefined ? resolve(found) : reject(error),
        );
      });
      return this.#call<Response>(connection, api, args);
    });
  }

  /** The library's own time-outs leave gaps: who waits for a connection that has failed already is never called. */
  async #inTime<Response>(request: () => Promise<Response>): Promise<Response> {
    const base = this.#base;
    const limitMs = CONNECT_TIMEOUT_MS + this.#answerTimeoutMs + GRACE_MS;
    const answer = await within(TIMERS, request(), limitMs, LATE);
    if (answer !== LATE) return answer;
    if (this.#base === base && !base.closed) {
      this.#base = new Base(this.#options);
      base.close().catch(() => undefined);
    }
    throw new Error(`no answer within ${limitMs} ms`);
  }

  #call<Response>(connection: Connection, api: string, args: unknown[]): Promise<Response> {
    return new Promise((resolve, reject) => {
      this.#base[kGetApi]<unknown[], Response>(api, (error, request?: API<unknown[], Response>) => {
        if (error !== null || request === undefined) {
          reject(error);
          return;
        }
        if (api === 'Fetch') {
          resolve(fetchFrom(connection, request, args) as Promise<Response>);
          return;
        }
        request(connection, ...args, (failure: Error | null, response?: Response) => {
          if (failure === null) resolve(response as Response);
          else reject(failure);
        });
      });
    });
  }
}

/** What the broker answered where the library makes an error of it. */
export function responseOf<Response>(error: unknown): Response | undefined {
  if (!(error instanceof ResponseError)) return undefined;
  return (error as unknown as { response: Response }).response;
}

/** Kafka's name of the (first) error in a broker's answer, like `REBALANCE_IN_PROGRESS`. */
export function protocolErrorOf(error: unknown): string | undefined {
  if (!(error instanceof ResponseError)) return undefined;
  const [first] = error.errors as readonly { apiId?: string }[];
  return first?.apiId;
}

export function toBaseOptions(
  { clientId, brokers, tls, sasl }: ClientOptions,
  answerTimeoutMs: number,
): BaseOptions {
  const options: BaseOptions = {
    clientId,
    bootstrapBrokers: [...brokers],
    connectTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: answerTimeoutMs,
    // Attempts are made again by those who know whether that is of use.
    retries: 0,
    autocreateTopics: false,
  };
  if (tls !== undefined && tls !== false) {
    options.tls = tls === true ? {} : tls;
    options.tlsServerName = true;
  }
  if (sasl !== undefined) options.sasl = toSasl(sasl);
  return options;
}

function toSasl(sasl: SaslOptions): SASLOptions {
  switch (sasl.mechanism) {
    case 'plain':
      return { mechanism: 'PLAIN', username: sasl.username, password: sasl.password };
    case 'scram-sha-256':
      return { mechanism: 'SCRAM-SHA-256', username: sasl.username, password: sasl.password };
    case 'scram-sha-512':
      return { mechanism: 'SCRAM-SHA-512', username: sasl.username, password: sasl.password };
    case 'oauthbearer':
      return { mechanism: 'OAUTHBEARER', token: sasl.token };
    default:
      return sasl satisfies never;
  }
}
