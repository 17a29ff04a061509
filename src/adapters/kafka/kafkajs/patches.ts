import { crc32c } from '@node-rs/crc32';
import { MillraceError } from '../../../core/errors.ts';
import type { TopicPartition } from '../../../ports/message-bus.ts';
import { topicRuns } from '../fetch-order.ts';
import { decodeFetch } from './fetch.ts';
import {
  type Broker,
  brokerClass,
  brokerPoolClass,
  type ConsumerGroup,
  clusterClass,
  compressWith,
  consumerGroupClass,
  encoderClass,
  type FetchOptions,
  installedVersion,
  KAFKAJS_VERSION,
  type KafkaJsError,
  METADATA_VERSIONS,
  metadataResponse,
  PRODUCE_VERSIONS,
  type Protocol,
  produceResponse,
  type ResponseModule,
  rebalanceError,
  replaceModule,
  replaceProduceRequest,
  requestQueueClass,
} from './internals.ts';
import { produceRequest } from './produce-request.ts';

/**
 * What kafkajs 2.2.4 needs before it can carry millrace. Each patch says why. Patches that change what a caller sees apply only to the
 * clients, brokers and groups that this adapter made: another user of kafkajs in the process notices nothing.
 */

/** What a group of ours does at the moments that kafkajs offers no event for. */
export interface GroupHooks {
  /** True where the member wants a new assignment: the next heartbeat then behaves as if the group were rebalancing. */
  takesRejoin(): boolean;
  /** Called instead of kafkajs's jump to an end of the log. */
  onOutOfRange(partition: TopicPartition): void;
  /** The group object that joins, synchronously before its first request. */
  onJoining(group: ConsumerGroup): void;
}

/** Puts what a broker is asked for into the order of the request. */
export type SortPartitions = <P extends TopicPartition>(partitions: readonly P[]) => readonly P[];

/** What is written in one piece of this size is a whole request: little follows it. */
const LARGE_BYTES = 16_384;
const groupHooks = new WeakMap<object, GroupHooks>();
const ownLoggers = new WeakSet<object>();
const fetchOrders = new WeakMap<object, SortPartitions>();
const responses = new WeakMap<object, unknown>();
let applied = false;

/** The hooks of the consumer that uses `assigner` as its first. */
export function hookGroup(assigner: object, hooks: GroupHooks): void {
  groupHooks.set(assigner, hooks);
}

/** Marks a client as ours by its root logger, which all its brokers share. */
export function adoptClient(rootLogger: object): void {
  ownLoggers.add(rootLogger);
}

/** In which order the consumer of a client of ours, known by its root logger, asks brokers for partitions. */
export function hookFetches(rootLogger: object, sort: SortPartitions): void {
  fetchOrders.set(rootLogger, sort);
}

/** What the broker really answered when kafkajs made an error of it: one bad partition fails the whole response. */
export function responseOf<T>(error: unknown): T | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const response = responses.get(each);
    if (response !== undefined) return response as T;
  }
  return undefined;
}

/** Applies all patches, once per process, before the first client is made. */
export function applyPatches(): void {
  if (applied) return;
  const version = installedVersion();
  if (version !== KAFKAJS_VERSION) {
    throw new MillraceError('INVALID_CONFIG', 'This version of kafkajs is not known to work', {
      value: version,
      allowed: KAFKAJS_VERSION,
      advice: 'Install that version, or use the client "platformatic".',
    });
  }
  applied = true;
  stopIdleTimers();
  shareWaits();
  replaceChecksum();
  replaceProduceRequests();
  growWithoutFilling();
  prependHeaders();
  keepResponses();
  tolerateBadTopics();
  keepKnownTopics();
  keepLastBroker();
  boundFetches();
  orderFetches();
  openGroups();
}

/**
 * Each response schedules a timer of 0 or 1 ms that looks for pending requests, which schedules the next one: some 870 timers a second on an
 * idle connection, and on Node 24 a TimeoutNegativeWarning. With nothing pending there is nothing to look for; `push` schedules it again.
 */
function stopIdleTimers(): void {
  const { prototype } = requestQueueClass();
  const { scheduleCheckPendingRequests } = prototype;
  prototype.scheduleCheckPendingRequests = function schedule() {
    if (this.pending.length > 0) scheduleCheckPendingRequests.call(this);
  };
}

/**
 * Every request that fails with its connection closes both connections to the broker, and each waits for what the other still has in flight with
 * a listener of its own: with more than ten of them, on a broker that does not answer, Node warns of a leak.
 */
function shareWaits(): void {
  const { prototype } = requestQueueClass();
  const { waitForPendingRequests } = prototype;
  const waits = new WeakMap<object, Promise<void>>();
  prototype.waitForPendingRequests = function wait() {
    let waiting = waits.get(this);
    if (waiting === undefined) {
      waiting = waitForPendingRequests.call(this).finally(() => waits.delete(this));
      waits.set(this, waiting);
    }
    return waiting;
  };
}

/** The checksum of record batches is computed in JavaScript, at 380 MB/s: an eighth of the CPU of a relay of 32 KB records. */
function replaceChecksum(): void {
  replaceModule('protocol/recordBatch/crc32C', (bytes: Uint8Array) => crc32c(bytes));
}

/** See produce-request.ts: the same bytes for a third of the CPU. */
function replaceProduceRequests(): void {
  for (const version of PRODUCE_VERSIONS) {
    replaceProduceRequest(version, (options) => produceRequest(options, version, compressWith));
  }
}

/** A growing buffer is filled with zeros and then written over, and takes up to twice what a large request needs, twice per request. */
function growWithoutFilling(): void {
  const { prototype } = encoderClass();
  prototype.ensureAvailable = function grow(bytes) {
    const needed = this.offset + bytes;
    if (needed <= this.buf.length) return;
    const grown = Buffer.allocUnsafeSlow(bytes >= LARGE_BYTES ? needed : 2 ** (32 - Math.clz32(needed)));
    this.buf.copy(grown, 0, 0, this.offset);
    this.buf = grown;
  };
}

/** The body of a request is copied behind its header, and both behind their length: here the header is written before the body instead. */
function prependHeaders(): void {
  const { prototype } = encoderClass();
  const { writeEncoder } = prototype;
  /** What an encoder's `buf` is the end of. */
  const wholes = new WeakMap<object, Buffer>();
  prototype.writeEncoder = function write(other) {
    const whole = 'whole' in other ? other.whole : wholes.get(other);
    const start = (whole?.length ?? 0) - other.buf.length - this.offset;
    const isEnd =
      whole?.buffer === other.buf.buffer && !('offset' in other && other.offset !== other.buf.length);
    if (whole === undefined || start < 0 || !isEnd) return writeEncoder.call(this, other);
    wholes.delete(other);
    wholes.set(this, whole);
    this.buf.copy(whole, start, 0, this.offset);
    this.buf = whole.subarray(start);
    this.offset = this.buf.length;
    return this;
  };
}

/** kafkajs throws the first error of a response and forgets what the other partitions were told. */
function keepResponses(): void {
  const modules: ResponseModule<unknown>[] = [
    ...PRODUCE_VERSIONS.map((version) => produceResponse(version) as ResponseModule<unknown>),
    ...METADATA_VERSIONS.map((version) => metadataResponse(version) as ResponseModule<unknown>),
  ];
  for (const module of modules) {
    const { parse } = module;
    module.parse = async (response) => {
      try {
        return await parse(response);
      } catch (error) {
        if (error instanceof Error && typeof response === 'object' && response !== null)
          responses.set(error, response);
        throw error;
      }
    };
  }
}

/** One topic that was deleted, or one partition without a leader, makes every refresh of the client's metadata fail, for all topics. */
function tolerateBadTopics(): void {
  const { prototype } = brokerClass();
  const { metadata } = prototype;
  prototype.metadata = async function tolerantMetadata(topics) {
    try {
      return await metadata.call(this, topics);
    } catch (error) {
      const response = ownLoggers.has(this.rootLogger) ? responseOf<object>(error) : undefined;
      if (response === undefined) throw error;
      return response;
    }
  };
}

/**
 * Who asks for topics that the client does not know yet makes it forget all others, whatever else is under way: the offsets of a topic, read at the
 * same time, then come back as if it had no partitions ("Cannot destructure property 'partitions' of 'low.pop(...)'"), or only some of them.
 */
function keepKnownTopics(): void {
  const { prototype } = clusterClass();
  const { metadata } = prototype;
  prototype.metadata = async function metadataAlone(options = {}) {
    if (!ownLoggers.has(this.rootLogger)) return metadata.call(this, options);
    await this.refreshMetadataIfNecessary();
    return this.brokerPool.withBroker(({ broker }) => broker.metadata(options.topics ?? []));
  };
}

/**
 * A broker whose connection closed is forgotten until the next metadata; with the only one gone there is nobody to ask, and consumers crash at
 * once where they would only have to wait. The last one is kept: it is connected to again like any other.
 */
function keepLastBroker(): void {
  const { prototype } = brokerPoolClass();
  const { removeBroker } = prototype;
  prototype.removeBroker = function remove(broker) {
    if (ownLoggers.has(this.rootLogger) && Object.keys(this.brokers).length === 1)
      this.metadataExpireAt = null;
    else removeBroker.call(this, broker);
  };
}

/** See fetch.ts: what a producer wrote must not take all of a consumer's memory or time. */
function boundFetches(): void {
  const { prototype } = brokerClass();
  const { fetch } = prototype;
  prototype.fetch = function boundedFetch(options) {
    if (!ownLoggers.has(this.rootLogger)) return fetch.call(this, options);
    const lookupRequest: Broker['lookupRequest'] = (apiKey, definition) => {
      const make = this.lookupRequest(apiKey, definition);
      return (asked) => withOwnReader(make(asked) as Protocol);
    };
    // The same broker in all but how it reads the answer.
    return fetch.call(Object.create(this, { lookupRequest: { value: lookupRequest } }), options);
  };
}

function withOwnReader(protocol: Protocol): Protocol {
  const { apiVersion } = protocol.request;
  const decode = (payload: Buffer): Promise<unknown> => decodeFetch(payload, apiVersion);
  return { ...protocol, response: { ...protocol.response, decode } };
}

/**
 * kafkajs shuffles what it asks a broker for, whatever order it is given. With every fetch chance leaves out others where an answer has no room for
 * all, and some for long. For our consumers the request is made in their order, after the shuffle.
 */
function orderFetches(): void {
  const { prototype } = brokerClass();
  const { fetch } = prototype;
  prototype.fetch = function orderedFetch(options) {
    const sort = fetchOrders.get(this.rootLogger);
    if (sort === undefined) return fetch.call(this, options);
    const topics = topicRuns(sort(partitionsOf(options)));
    const lookupRequest: Broker['lookupRequest'] = (apiKey, definition) => {
      const make = this.lookupRequest(apiKey, definition);
      return (shuffled) => make({ ...shuffled, topics });
    };
    // The same broker in all but the request that it makes.
    return fetch.call(Object.create(this, { lookupRequest: { value: lookupRequest } }), options);
  };
}

function partitionsOf({ topics }: FetchOptions): TopicPartition[] {
  return topics.flatMap(({ topic, partitions }) => partitions.map((each) => ({ ...each, topic })));
}

/**
 * kafkajs tells of a rebalance when it is over, has no way to ask for one, jumps to an end of the log (and commits -1 or -2) when an offset is
 * out of range, and heartbeats to a coordinator that is gone until the retries are used up. A join that fails, as with a coordinator that still
 * loads its groups, it forgets: the heartbeats that follow go to the new coordinator, which knows the member, and the commits to the old one,
 * which is gone, for as long as the generation lasts.
 */
function openGroups(): void {
  const { prototype } = consumerGroupClass();
  const { joinAndSync, heartbeat, recoverFromOffsetOutOfRange } = prototype;
  const failedToJoin = new WeakSet<ConsumerGroup>();
  prototype.joinAndSync = async function join() {
    hooksOf(this)?.onJoining(this);
    try {
      await joinAndSync.call(this);
      failedToJoin.delete(this);
    } catch (error) {
      failedToJoin.add(this);
      throw error;
    }
  };
  prototype.heartbeat = async function beat(options) {
    const hooks = hooksOf(this);
    if (hooks?.takesRejoin()) throw rebalanceError('The member asks for a new assignment');
    if (hooks !== undefined && failedToJoin.has(this)) throw rebalanceError('The last join failed');
    try {
      await heartbeat.call(this, options);
    } catch (error) {
      if (hooks === undefined || !isConnectionError(error)) throw error;
      throw rebalanceError('The coordinator is gone, looking for the next one');
    }
  };
  prototype.recoverFromOffsetOutOfRange = async function recover(error) {
    const hooks = hooksOf(this);
    if (hooks === undefined) await recoverFromOffsetOutOfRange.call(this, error);
    else hooks.onOutOfRange({ topic: error.topic, partition: error.partition });
  };
}

function hooksOf(group: ConsumerGroup): GroupHooks | undefined {
  const [assigner] = group.assigners;
  return assigner === undefined ? undefined : groupHooks.get(assigner);
}

function isConnectionError(error: unknown): error is KafkaJsError {
  return error instanceof Error && /^KafkaJSConnection(Closed)?Error$/.test(error.name);
}
