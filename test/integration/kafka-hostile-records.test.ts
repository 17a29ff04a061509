import kafkajs, { type CompressionTypes, type Message } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { applyPatches } from '../../src/adapters/kafka/kafkajs/patches.ts';
import type { InboundRecord, MessageBus } from '../../src/ports/message-bus.ts';
import { type Client, kafkaFactory, sharedBrokers } from '../conformance/kafka.fixture.ts';
import {
  type BusFactory,
  createTopic,
  eventuallyCommitted,
  Recorder,
  uniqueName,
} from '../conformance/message-bus.fixture.ts';
import { gzipBomb, lz4Bomb, snappyBomb, zstdBomb } from './packed-bombs.ts';

/** What a producer may write without the broker's refusing it, and what must not stop a partition, block a process or take its memory. */

// For the producers of the test too: they write headers without a value.
applyPatches();

const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];
const { GZIP, Snappy, LZ4, ZSTD } = kafkajs.CompressionTypes;
/** Snappy packs so badly that a bomb of it needs a topic with a higher limit than those of millrace. */
const TOPIC = { 'max.message.bytes': String(4 * 2 ** 20) };
/** Far above what unpacking within the bounds takes, and far below what the bombs hold. */
const GROWTH_MAX = 450 * 2 ** 20;

async function produce(topic: string, messages: Message[], compression?: CompressionTypes): Promise<void> {
  const kafka = new kafkajs.Kafka({
    clientId: 'outside',
    brokers: [...sharedBrokers()],
    logLevel: kafkajs.logLevel.NOTHING,
    requestTimeout: 60_000,
  });
  const producer = kafka.producer({ createPartitioner: () => () => 0, retry: { retries: 0 } });
  await producer.connect();
  await producer
    .send({ topic, messages, ...(compression === undefined ? {} : { compression }) })
    .finally(() => producer.disconnect());
}

/** Sends bytes that are packed already, as one record. */
async function producePacked(topic: string, compression: CompressionTypes, packed: Buffer): Promise<void> {
  const codecs = kafkajs.CompressionCodecs as Record<CompressionTypes, () => object>;
  const before = codecs[compression];
  codecs[compression] = () => ({ compress: async () => packed });
  await produce(topic, [{ key: null, value: 'in its place' }], compression).finally(() => {
    codecs[compression] = before;
  });
}

describe.each(CLIENTS)('on %s', (client) => {
  let run: BusFactory;
  let bus: MessageBus;
  let topic: string;
  let group: string;

  beforeEach(async () => {
    run = kafkaFactory(client, sharedBrokers());
    bus = await run.connect();
    topic = await createTopic(run, bus, 1, TOPIC);
    group = uniqueName('group');
  });
  afterEach(() => run.close());

  const subscribe = () =>
    Recorder.subscribe(run, bus, { group, topics: [topic], startAt: 'earliest' }, 'acknowledging');
  const shown = ({ offset, value, unreadable }: InboundRecord) => [
    offset,
    unreadable?.code ?? value?.toString() ?? null,
  ];

  it.each([
    ['gzip', 900, GZIP, gzipBomb],
    ['zstd', 300, ZSTD, zstdBomb],
    ['lz4', 300, LZ4, lz4Bomb],
    ['snappy', 64, Snappy, snappyBomb],
  ])('a %s batch of %i MB of zeros stops nothing and takes no memory', async (_, megabytes, type, make) => {
    await produce(topic, [{ value: 'before' }]);
    await producePacked(topic, type, await make(megabytes));
    await produce(topic, [{ value: 'after' }]);
    const startedAt = process.memoryUsage().rss;
    let peak = startedAt;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 5);
    const recorder = await subscribe();
    await run.eventually(() => recorder.records.length >= 3, 'the records arrived');
    clearInterval(watch);
    expect(recorder.records.map(shown)).toEqual([
      [0, 'before'],
      [1, 'TOO_LARGE'],
      [2, 'after'],
    ]);
    await eventuallyCommitted(run, bus, group, topic, [3]);
    expect(recorder.errors).toEqual([]);
    expect(peak - startedAt).toBeLessThan(GROWTH_MAX);
  });

  it('what is packed well within the bounds arrives, in each codec', async () => {
    for (const [type, make] of [
      [GZIP, gzipBomb],
      [ZSTD, zstdBomb],
      [LZ4, lz4Bomb],
      [Snappy, snappyBomb],
    ] as const)
      await producePacked(topic, type, await make(12));
    const recorder = await subscribe();
    await run.eventually(() => recorder.records.length >= 4, 'the records arrived');
    expect(recorder.records.map(({ value }) => value?.length)).toEqual(Array(4).fill(12 * 2 ** 20));
  });

  it('a record with very many headers blocks nothing and is delivered', async () => {
    const headers = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`h${i}`, 'x']));
    await produce(topic, [{ value: 'many', headers }, { value: 'after' }]);
    let late = 0;
    let at = performance.now();
    const watch = setInterval(() => {
      late = Math.max(late, performance.now() - at);
      at = performance.now();
    }, 10);
    const recorder = await subscribe();
    await run.eventually(() => recorder.records.length >= 2, 'the records arrived');
    clearInterval(watch);
    expect(recorder.records.map(shown)).toEqual([
      [0, 'many'],
      [1, 'after'],
    ]);
    expect(Object.keys(recorder.records[0]?.headers ?? {})).toHaveLength(1_000);
    // A reader that copies all headers for each header takes minutes.
    expect(late).toBeLessThan(5_000);
    await eventuallyCommitted(run, bus, group, topic, [2]);
  });

  it('headers without a value and of odd names are no harm', async () => {
    const headers = { none: null as unknown as Buffer, ['__proto__']: 'p', toString: 't', twice: ['1', '2'] };
    await produce(topic, [{ value: 'v', headers }]);
    const recorder = await subscribe();
    await run.eventually(() => recorder.records.length >= 1, 'the record arrived');
    const delivered = Object.entries(recorder.records[0]?.headers ?? {});
    expect(delivered.map(([name, value]) => [name, value.toString()])).toEqual([
      ['__proto__', 'p'],
      ['toString', 't'],
      ['twice', '2'],
    ]);
  });

  it('a reader without a group passes what cannot be read', async () => {
    await producePacked(topic, ZSTD, await zstdBomb(40));
    await produce(topic, [{ value: 'after' }]);
    const records: InboundRecord[] = [];
    const reader = await bus.read({ topics: [topic], startAt: 'earliest' }, (batch) =>
      records.push(...batch),
    );
    await reader.caughtUp;
    expect(records.map(shown)).toEqual([[1, 'after']]);
    await reader.close();
  });
});
