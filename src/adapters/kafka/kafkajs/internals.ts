import { createRequire } from 'node:module';
import type { Compress, Encoded, ProduceOptions } from './produce-request.ts';

/**
 * The parts of kafkajs 2.2.4 that it does not export and that the patches touch: only what is used. The library has been frozen since 2023 and
 * its version is pinned; the patches' test fails where one of these no longer looks like this.
 */
const require = createRequire(import.meta.url);

export const KAFKAJS_VERSION = '2.2.4';

export interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
  /** Resolves when nothing is pending or in flight. */
  waitForPendingRequests(): Promise<void>;
}

export interface Encoder {
  buf: Buffer;
  offset: number;
  /** Makes room for so many more bytes. */
  ensureAvailable(bytes: number): void;
  /** Appends what the other one holds. */
  writeEncoder(other: Encoder | Encoded): Encoder;
}

export interface OffsetManager {
  /** Under the generation in which the manager was made. */
  commitOffsets(offsets: {
    topics: readonly { topic: string; partitions: readonly { partition: number; offset: string }[] }[];
  }): Promise<void>;
}

export interface ConsumerGroup {
  readonly assigners: readonly object[];
  readonly generationId: number;
  readonly memberId: string;
  readonly offsetManager: OffsetManager;
  readonly subscriptionState: { active(): readonly { partitions: readonly number[] }[] };
  /** True while a seek waits for the next fetch. */
  hasSeekOffset(partition: { topic: string; partition: number }): boolean;
  joinAndSync(): Promise<void>;
  heartbeat(options: { interval: number }): Promise<void>;
  recoverFromOffsetOutOfRange(error: { topic: string; partition: number }): Promise<void>;
}

export interface FetchOptions {
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number }[];
  }[];
}

export interface Broker {
  /** The same object for all brokers of one client. */
  readonly rootLogger: object;
  metadata(topics?: readonly string[]): Promise<unknown>;
  fetch(options: FetchOptions): Promise<unknown>;
  /** What makes requests of a kind, in the version that the broker speaks. */
  lookupRequest(apiKey: number, definition: object): (options: object) => object;
}

/** A request and how its answer is read. */
export interface Protocol {
  readonly request: { readonly apiVersion: number };
  readonly response: { decode(payload: Buffer): Promise<unknown>; parse(decoded: unknown): Promise<unknown> };
}

export interface BrokerPool {
  readonly rootLogger: object;
  readonly brokers: Readonly<Record<string, unknown>>;
  metadataExpireAt: number | null;
  removeBroker(broker: { host: string; port: number }): void;
}

export interface Cluster {
  /** That of the client. */
  readonly rootLogger: object;
  readonly brokerPool: {
    withBroker<T>(call: (found: { broker: Pick<Broker, 'metadata'> }) => Promise<T>): Promise<T>;
  };
  /** What the cluster says of these topics; of all where none is named. */
  metadata(options?: { topics?: readonly string[] }): Promise<unknown>;
  /** Of all topics that calls of this client were about. */
  refreshMetadataIfNecessary(): Promise<void>;
}

export interface ProduceResponse {
  topics: { topicName: string; partitions: { partition: number; errorCode: number; baseOffset: string }[] }[];
}

export interface ResponseModule<T> {
  parse(response: T): Promise<T>;
}

/** Any error of kafkajs: `type` names a protocol error. */
export interface KafkaJsError extends Error {
  readonly type?: string;
  readonly retriable?: boolean;
}

type Prototype<T> = { prototype: T };

/** A module inside kafkajs, loaded now; it is the one that kafkajs itself uses. */
function load<T>(path: string): T {
  return require(`kafkajs/src/${path}`) as T;
}

export function installedVersion(): string {
  return (require('kafkajs/package.json') as { version: string }).version;
}

export const requestQueueClass = (): Prototype<RequestQueue> => load('network/requestQueue');
export const encoderClass = (): Prototype<Encoder> => load('protocol/encoder');
export const consumerGroupClass = (): Prototype<ConsumerGroup> => load('consumer/consumerGroup');
export const brokerPoolClass = (): Prototype<BrokerPool> => load('cluster/brokerPool');
export const clusterClass = (): Prototype<Cluster> => load('cluster');
export const brokerClass = (): Prototype<Broker> => load('broker');
export const metadataResponse = (version: number): ResponseModule<unknown> =>
  load(`protocol/requests/metadata/v${version}/response`);
export const produceResponse = (version: number): ResponseModule<ProduceResponse> =>
  load(`protocol/requests/produce/v${version}/response`);
export const METADATA_VERSIONS = [0, 1, 2, 3, 4, 5, 6] as const;
/** Below 3 there are no record batches. */
export const PRODUCE_VERSIONS = [3, 4, 5, 6, 7] as const;

export const errorFromCode = (code: number): KafkaJsError =>
  load<{ createErrorFromCode(code: number): KafkaJsError }>('protocol/error').createErrorFromCode(code);

export const rebalanceError = (message: string): KafkaJsError => {
  const { KafkaJSProtocolError } = load<{
    KafkaJSProtocolError: new (error: {
      message: string;
      type: string;
      code: number;
      retriable: boolean;
    }) => KafkaJsError;
  }>('errors');
  return new KafkaJSProtocolError({ message, type: 'REBALANCE_IN_PROGRESS', code: 27, retriable: false });
};

/** kafkajs's codec of a compression type, as registered. */
export const compressWith: Compress = (compression, records) =>
  load<{ lookupCodec(type: number): { compress(records: { buffer: Buffer }): Promise<Buffer> } }>(
    'protocol/message/compression',
  )
    .lookupCodec(compression)
    .compress(records);

/** kafkajs loads the module of a request's version with every request, so that this takes effect at once. */
export function replaceProduceRequest(version: number, make: (options: ProduceOptions) => unknown): void {
  replaceModule(`protocol/requests/produce/v${version}/request`, make);
}

/** Puts `exports` in the place of a module's, for those that load it from now on. */
export function replaceModule(path: string, exports: unknown): void {
  load(path);
  const module = require.cache[require.resolve(`kafkajs/src/${path}`)];
  if (module !== undefined) module.exports = exports;
}
