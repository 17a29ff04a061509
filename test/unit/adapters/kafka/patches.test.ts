import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { crc32c } from '@node-rs/crc32';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  brokerClass,
  brokerPoolClass,
  type ConsumerGroup,
  clusterClass,
  consumerGroupClass,
  encoderClass,
  errorFromCode,
  installedVersion,
  KAFKAJS_VERSION,
  METADATA_VERSIONS,
  metadataResponse,
  PRODUCE_VERSIONS,
  produceResponse,
  rebalanceError,
  requestQueueClass,
} from '../../../../src/adapters/kafka/kafkajs/internals.ts';
import {
  adoptClient,
  applyPatches,
  hookFetches,
  hookGroup,
  responseOf,
} from '../../../../src/adapters/kafka/kafkajs/patches.ts';
import { encodeProduce } from '../../../../src/adapters/kafka/kafkajs/produce-request.ts';

const require = createRequire(import.meta.url);
const load = <T>(path: string) => require(`kafkajs/src/${path}`) as T;

/** As they are before any patch. */
const source = {
  schedule: requestQueueClass().prototype.scheduleCheckPendingRequests.toString(),
  wait: requestQueueClass().prototype.waitForPendingRequests.toString(),
  grow: encoderClass().prototype.ensureAvailable.toString(),
  remove: brokerPoolClass().prototype.removeBroker.toString(),
  metadata: clusterClass().prototype.metadata.toString(),
  join: consumerGroupClass().prototype.joinAndSync.toString(),
  recover: consumerGroupClass().prototype.recoverFromOffsetOutOfRange.toString(),
  parse: produceResponse(7).parse.toString(),
  fetch: brokerClass().prototype.fetch.toString(),
  group: load<(options: object) => object>('producer/groupMessagesPerPartition').toString(),
};

interface Writer {
  writeInt32(value: number): Writer;
  writeBuffer(bytes: Buffer): Writer;
  writeEncoder(other: object): Writer;
}

/** Objects of kafkajs's classes without their constructors, which want half a client. */
const make = <T>(type: { prototype: T }, fields: object): T =>
  Object.assign(Object.create(type.prototype as object), fields);

describe('kafkajs as it is installed', () => {
  it('is the version that the patches were made for', () => expect(installedVersion()).toBe(KAFKAJS_VERSION));

  it.each([
    ['RequestQueue', requestQueueClass, ['scheduleCheckPendingRequests', 'waitForPendingRequests']],
    ['Encoder', encoderClass, ['ensureAvailable']],
    ['Broker', brokerClass, ['metadata', 'fetch']],
    ['BrokerPool', brokerPoolClass, ['removeBroker', 'withBroker']],
    ['Cluster', clusterClass, ['metadata', 'refreshMetadataIfNecessary']],
    [
      'ConsumerGroup',
      consumerGroupClass,
      ['joinAndSync', 'heartbeat', 'recoverFromOffsetOutOfRange', 'hasSeekOffset'],
    ],
  ] as const)('still has what the patches replace in %s', (_, type, methods) => {
    const prototype = type().prototype as unknown as Record<string, unknown>;
    for (const method of methods) expect(prototype[method]).toBeTypeOf('function');
  });

  it.each([
    [
      'a timer though nothing is pending',
      source.schedule,
      /if \(this\.pending\.length > 0\) \{[^}]*\}\s*this\.throttleCheckTimeoutId = setTimeout/,
    ],
    [
      'a listener for each that waits for a connection’s requests',
      source.wait,
      /this\.once\(REQUEST_QUEUE_EMPTY/,
    ],
    ['zeros in a buffer that grows', source.grow, /Buffer\.alloc\(/],
    ['a broker that is forgotten with its connection', source.remove, /delete this\.brokers/],
    [
      'the topics asked for as all that the client knows',
      source.metadata,
      /brokerPool\.refreshMetadataIfNecessary\(topics\)/,
    ],
    ['a commit of the default offset where an offset is out of range', source.recover, /setDefaultOffset/],
    ['a join that is given up, and forgotten, where the coordinator is loading', source.join, /bail\(e\)/],
    ['messages grouped by a `reduce` of their own', source.group, /messages\.reduce\(/],
    ['partitions in an order that nobody chose', source.fetch, /shuffle\(flattenedTopicPartitions\)/],
    ['a request that is looked up on the broker', source.fetch, /this\.lookupRequest\(apiKeys\.Fetch/],
    ['the first error of an answer instead of the answer', source.parse, /throw createErrorFromCode/],
  ])('still has %s: else the patch is superfluous', (_, text, expected) => expect(text).toMatch(expected));
});

describe('the patches', () => {
  beforeAll(() => {
    applyPatches();
    applyPatches();
  });

  it('leave no timer on an idle connection', () => {
    const fields = {
      pending: [] as unknown[],
      throttledUntil: -1,
      throttleCheckTimeoutId: null as NodeJS.Timeout | null,
      checkPendingRequests: () => undefined,
    };
    const queue = make(requestQueueClass(), fields) as unknown as typeof fields & {
      scheduleCheckPendingRequests(): void;
    };
    queue.scheduleCheckPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeNull();
    queue.pending.push({});
    queue.scheduleCheckPendingRequests();
    expect(queue.throttleCheckTimeoutId).not.toBeNull();
    clearTimeout(queue.throttleCheckTimeoutId ?? undefined);
  });

  it('wait for the requests of a connection with one listener, however many close it, and again later', async () => {
    type Queue = EventEmitter & { inflight: Map<number, object>; waitForPendingRequests(): Promise<void> };
    const Queue = requestQueueClass() as unknown as new (options: object) => Queue;
    const queue = new Queue({ clientId: 'c', broker: 'b', logger: { debug: () => undefined } });
    for (let round = 0; round < 2; round += 1) {
      queue.inflight.set(1, {});
      const waits = Array.from({ length: 12 }, () => queue.waitForPendingRequests());
      expect(queue.listenerCount('requestQueueEmpty')).toBe(1);
      queue.inflight.clear();
      queue.emit('requestQueueEmpty');
      await Promise.all(waits);
      expect(queue.listenerCount('requestQueueEmpty')).toBe(0);
    }
    await queue.waitForPendingRequests();
  });

  it('put the fast checksum where kafkajs looks for its own, and it is the same', () => {
    const checksum = load<(bytes: Buffer) => number>('protocol/recordBatch/crc32C');
    const slow = load<(bytes: Buffer) => number>('protocol/recordBatch/crc32C/crc32C');
    for (const length of [0, 1, 7, 1_000, 70_000]) {
      const bytes = Buffer.alloc(length, `${length}`);
      expect(checksum(bytes)).toBe(crc32c(bytes));
      expect(checksum(bytes)).toBe(slow(bytes));
    }
  });

  it.each(PRODUCE_VERSIONS)('make the produce request of version %i', async (version) => {
    const request = load<{
      protocol(options: {
        version: number;
      }): (options: object) => { request: { apiVersion: number; encode(): Promise<object> } };
    }>('protocol/requests/produce').protocol({ version })({
      acks: -1,
      timeout: 1,
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages: [{ key: null, value: 'v' }] }] }],
    }).request;
    expect(request.apiVersion).toBe(version);
    const encoded = (await request.encode()) as { buf: Buffer; offset?: number };
    expect(encoded.offset).toBeUndefined();
    expect(Buffer.isBuffer(encoded.buf)).toBe(true);
  });

  it('let buffers grow without losing what is in them', () => {
    const Encoder =
      load<
        new () => {
          writeBytes(bytes: Buffer): { buffer: Buffer };
          writeInt32(value: number): unknown;
          buffer: Buffer;
        }
      >('protocol/encoder');
    for (const size of [1, 500, 5_000, 16_384, 100_000]) {
      const encoder = new Encoder();
      encoder.writeInt32(7);
      encoder.writeBytes(Buffer.alloc(size, 1));
      encoder.writeInt32(9);
      expect(encoder.buffer).toHaveLength(12 + size);
      expect(encoder.buffer.readInt32BE(0)).toBe(7);
      expect(encoder.buffer.subarray(8, -4).every((byte) => byte === 1)).toBe(true);
      expect(encoder.buffer.readInt32BE(8 + size)).toBe(9);
    }
  });

  it.each([0, 3, 480, 600, 5_000])(
    'put a header of %i bytes before the body of a request, without harm',
    async (size) => {
      const Encoder = load<new () => Writer & { buffer: Buffer }>('protocol/encoder');
      const messages = [{ key: null, value: Buffer.alloc(3_000, 7) }];
      const options = {
        acks: -1,
        timeout: 1,
        topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }],
      };
      const body = await encodeProduce(options, async () => Buffer.alloc(0));
      const expected = Buffer.from(body.buffer);
      const header = Buffer.alloc(size, 1);
      const request = new Encoder().writeBuffer(header).writeEncoder(body) as Writer & { buffer: Buffer };
      const framed = new Encoder().writeInt32(request.buffer.length).writeEncoder(request) as Writer & {
        buffer: Buffer;
      };
      expect(framed.buffer.readInt32BE(0)).toBe(size + expected.length);
      expect(framed.buffer.subarray(4).equals(Buffer.concat([header, expected]))).toBe(true);
      const longer = framed.writeBuffer(Buffer.from('end')) as Writer & { buffer: Buffer };
      expect(longer.buffer.subarray(4).equals(Buffer.concat([header, expected, Buffer.from('end')]))).toBe(
        true,
      );
      const again = new Encoder().writeInt32(9).writeEncoder(longer) as Writer & { buffer: Buffer };
      expect(again.buffer.subarray(4).equals(longer.buffer)).toBe(true);
    },
  );

  it.each([
    ...PRODUCE_VERSIONS.map((version) => ['produce', version] as const),
    ...METADATA_VERSIONS.map((version) => ['metadata', version] as const),
  ])('keep the whole answer of a %s request of version %i that failed in part', async (kind, version) => {
    const failed = { errorCode: 10, partitionErrorCode: 5, partition: 1, leader: -1 };
    const fine = { errorCode: 0, partitionErrorCode: 0, partition: 0, leader: 1 };
    const answer = {
      topics: [{ topicName: 't', partitions: [fine, failed] }],
      topicMetadata: [{ topicErrorCode: 0, topic: 't', partitionMetadata: [fine, failed] }],
    };
    const { parse } = kind === 'produce' ? produceResponse(version) : metadataResponse(version);
    const error: unknown = await (parse as (answer: object) => Promise<object>)(answer).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ name: 'KafkaJSProtocolError' });
    expect(responseOf(error)).toBe(answer);
    expect(responseOf(new Error('wrapped', { cause: error }))).toBe(answer);
    expect(responseOf(new Error('other'))).toBeUndefined();
  });

  it('keep the last broker that is known, but only of our clients', () => {
    const own = {};
    adoptClient(own);
    const pool = (rootLogger: object) => {
      const broker = { nodeId: 1, connectionPool: { host: 'h', port: 1 } };
      return make(brokerPoolClass(), {
        rootLogger,
        brokers: { 1: broker },
        seedBroker: broker,
        metadataExpireAt: 5,
      });
    };
    const [ours, theirs] = [pool(own), pool({})];
    for (const each of [ours, theirs]) each.removeBroker({ host: 'h', port: 1 });
    expect(Object.keys(ours.brokers)).toEqual(['1']);
    expect(Object.keys(theirs.brokers)).toEqual([]);
    expect([ours.metadataExpireAt, theirs.metadataExpireAt]).toEqual([null, null]);
  });

  /** The client's view of two topics of one partition each, over a broker that tells of those asked for. */
  const clusterOf = (rootLogger: object) => {
    const broker = {
      metadata: async (topics: readonly string[]) => ({
        brokers: [{ nodeId: 1, host: 'h', port: 1 }],
        topicMetadata: topics.map((topic) => ({
          topic,
          partitionMetadata: [{ partitionId: 0, leader: 1 }],
        })),
      }),
      listOffsets: async ({
        topics,
      }: {
        topics: { topic: string; partitions: { partition: number }[] }[];
      }) => ({
        responses: topics.map(({ topic, partitions }) => ({
          topic,
          partitions: partitions.map((each) => ({ ...each, offset: '7' })),
        })),
      }),
    };
    interface Internals {
      metadata(options: { topics: string[] }): Promise<{ topicMetadata: { topic: string }[] }>;
      addTargetTopic(topic: string): Promise<void>;
      fetchTopicsOffset(topics: object[]): Promise<{ topic: string; partitions: object[] }[]>;
      brokerPool: object;
    }
    const Cluster = clusterClass() as unknown as new (options: object) => Internals;
    const logger = Object.assign(rootLogger, { namespace: () => ({ debug: () => undefined }) });
    const cluster = new Cluster({ logger, metadataMaxAge: 60_000, brokers: ['h:1'], offsets: new Map() });
    return Object.assign(cluster, {
      brokerPool: Object.assign(cluster.brokerPool, {
        findConnectedBroker: async () => broker,
        findBroker: async () => broker,
        seedBroker: { connectionPool: { host: 'h', port: 1 } },
      }),
    });
  };

  it('keep what a client knows of its topics when it is asked for another, but only of our clients', async () => {
    const offsetsAfterwards = async (rootLogger: object) => {
      const cluster = clusterOf(rootLogger);
      await cluster.addTargetTopic('old');
      const { topicMetadata } = await cluster.metadata({ topics: ['new'] });
      expect(topicMetadata.map(({ topic }) => topic)).toEqual(['new']);
      return cluster.fetchTopicsOffset([
        { topic: 'old', fromBeginning: true, partitions: [{ partition: 0 }] },
      ]);
    };
    const own = {};
    adoptClient(own);
    const offsets = [{ topic: 'old', partitions: [{ partition: 0, offset: '7' }] }];
    expect(await offsetsAfterwards(own)).toEqual(offsets);
    // What `fetchTopicOffsets` stumbles over.
    expect(await offsetsAfterwards({})).toEqual([]);
  });

  it("ask brokers for partitions in the order that the adapter wants, and leave other consumers' to kafkajs", async () => {
    const own = {};
    hookFetches(own, (partitions) => partitions.toReversed());
    const topics = [
      {
        topic: 't',
        partitions: Array.from({ length: 20 }, (_, partition) => ({ partition, fetchOffset: '7' })),
      },
      { topic: 'u', partitions: [{ partition: 0, fetchOffset: '8' }] },
    ];
    interface Asked {
      topics: { topic: string; partitions: { partition: number; fetchOffset: string }[] }[];
      rackId: string;
    }
    const send = async (request: object) => request;
    const broker = (rootLogger: object) =>
      make(brokerClass(), {
        rootLogger,
        lookupRequest: () => (options: object) => options,
        connectionPool: { send },
      });
    const asked = (await broker(own).fetch({ topics })) as Asked;
    expect(asked).toMatchObject({ maxBytes: 10_485_760, rackId: '' });
    expect(asked.topics.map(({ topic }) => topic)).toEqual(['u', 't']);
    const flat = asked.topics.flatMap(({ partitions }) => partitions);
    expect(flat.map(({ partition }) => partition)).toEqual([
      0,
      ...Array.from({ length: 20 }, (_, i) => 19 - i),
    ]);
    expect(flat.map(({ fetchOffset }) => fetchOffset)).toEqual(['8', ...new Array<string>(20).fill('7')]);
    const others = (await broker({}).fetch({ topics })) as Asked;
    expect(others.topics.flatMap(({ partitions }) => partitions).length).toBe(21);
    expect(others.topics).not.toEqual(topics);
  });

  it("make an error that kafkajs's runner takes for a rebalance", () => {
    const { isRebalancing } = load<{ isRebalancing(error: unknown): boolean }>('errors');
    expect(isRebalancing(rebalanceError('again'))).toBe(true);
    expect(errorFromCode(10)).toMatchObject({ type: 'MESSAGE_TOO_LARGE' });
  });

  describe('of the group', () => {
    const JOINED = { generationId: 2, leaderId: 'another', memberId: 'm', members: [], groupProtocol: 'p' };
    const newGroup = (assigner: object, coordinator: object) =>
      new (consumerGroupClass() as unknown as new (options: object) => ConsumerGroup)({
        assigners: [Object.assign(assigner, { protocol: () => ({}) })],
        cluster: { findGroupCoordinator: async () => coordinator, findTopicPartitionMetadata: () => [] },
        topics: [],
        topicConfigurations: {},
        logger: { namespace: () => ({ info: () => undefined, debug: () => undefined }) },
        instrumentationEmitter: { emit: () => undefined },
      });
    const group = (assigner: object, coordinator: object) =>
      make(consumerGroupClass(), {
        assigners: [assigner],
        memberId: 'm',
        generationId: 1,
        lastRequest: 0,
        coordinator,
        cluster: {},
      });
    const hooks = { takesRejoin: () => false, onOutOfRange: () => undefined, onJoining: () => undefined };

    it('let a member ask for a rebalance with its next heartbeat', async () => {
      const assigner = {};
      let wants = true;
      hookGroup(assigner, { ...hooks, takesRejoin: () => wants });
      await expect(group(assigner, {}).heartbeat({ interval: 1 })).rejects.toMatchObject({
        type: 'REBALANCE_IN_PROGRESS',
      });
      wants = false;
      await expect(group(assigner, {}).heartbeat({ interval: 1 })).rejects.not.toMatchObject({
        type: 'REBALANCE_IN_PROGRESS',
      });
    });

    it('let a member whose join failed join again with its next heartbeat, not go on as if it had not been asked', async () => {
      const LOADING = 14;
      const answers = [Promise.reject(errorFromCode(LOADING)), Promise.resolve(JOINED)];
      answers[0]?.catch(() => undefined);
      const coordinator = {
        joinGroup: () => answers.shift(),
        syncGroup: async () => ({ memberAssignment: Buffer.alloc(0) }),
        heartbeat: async () => undefined,
      };
      const assigner = {};
      hookGroup(assigner, hooks);
      const member = newGroup(assigner, coordinator);
      await expect(member.joinAndSync()).rejects.toMatchObject({ type: 'GROUP_LOAD_IN_PROGRESS' });
      await expect(member.heartbeat({ interval: 0 })).rejects.toMatchObject({
        type: 'REBALANCE_IN_PROGRESS',
      });
      await member.joinAndSync();
      await member.heartbeat({ interval: 0 });
      expect(member.offsetManager).toMatchObject({ coordinator, generationId: JOINED.generationId });
    });

    it("hand a position that is out of range to the adapter, and leave other consumers' to kafkajs", async () => {
      const assigner = {};
      const calls: unknown[] = [];
      hookGroup(assigner, { ...hooks, onOutOfRange: (partition) => calls.push(partition) });
      await group(assigner, {}).recoverFromOffsetOutOfRange({ topic: 't', partition: 3 });
      expect(calls).toEqual([{ topic: 't', partition: 3 }]);
      await expect(group({}, {}).recoverFromOffsetOutOfRange({ topic: 't', partition: 3 })).rejects.toThrow();
    });
  });
});
