import { createHook } from 'node:async_hooks';
import kafkajs, { type CompressionTypes, type Producer } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CODECS, type Codec, zstd } from '../../src/adapters/kafka/codecs.ts';
import { registerCodecs } from '../../src/adapters/kafka/kafkajs/compression.ts';
import { applyPatches } from '../../src/adapters/kafka/kafkajs/patches.ts';
import type { InboundRecord, MessageBus, TopicPartition } from '../../src/ports/message-bus.ts';
import { type Client, kafkaFactory, sharedBrokers } from '../conformance/kafka.fixture.ts';
import {
  type BusFactory,
  createTopic,
  eventuallyCommitted,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from '../conformance/message-bus.fixture.ts';

/** What has gone wrong for users of Kafka's JavaScript clients, each by its symptom, on a real broker. */

// For the clients of the test too: their timers and codecs.
applyPatches();
registerCodecs();

const kafka = () =>
  new kafkajs.Kafka({
    clientId: 'outside',
    brokers: [...sharedBrokers()],
    logLevel: kafkajs.logLevel.NOTHING,
  });
const admin = kafka().admin();
const warnings: Error[] = [];
const onWarning = (warning: Error) => warnings.push(warning);

beforeAll(async () => {
  process.on('warning', onWarning);
  await admin.connect();
});
afterAll(async () => {
  await admin.disconnect();
  process.off('warning', onWarning);
});

async function withProducer(
  options: Parameters<ReturnType<typeof kafka>['producer']>[0],
  use: (producer: Producer) => Promise<void>,
) {
  const producer = kafka().producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    ...options,
  });
  await producer.connect();
  await use(producer).finally(() => producer.disconnect());
}

async function deleteRecordsBelow(topic: string, offset: number): Promise<void> {
  await admin.fetchTopicOffsets(topic);
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] });
}

const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];

describe.each(CLIENTS)('on %s', (client) => {
  let run: BusFactory;
  let bus: MessageBus;
  let group: string;

  beforeEach(async () => {
    run = kafkaFactory(client, sharedBrokers());
    bus = await run.connect();
    group = uniqueName('group');
  });
  afterEach(() => run.close());

  const readAll = async (topic: string): Promise<InboundRecord[]> => {
    const records: InboundRecord[] = [];
    const reader = await bus.read({ topics: [topic], startAt: 'earliest' }, (batch) =>
      records.push(...batch),
    );
    await reader.caughtUp;
    await reader.close();
    return records;
  };

  describe('producing', () => {
    it('rejects the one record that a compacted topic does not take, and stores the others of its batch', async () => {
      const topic = await createTopic(run, bus, 1, { 'cleanup.policy': 'compact' });
      const keys = Array.from({ length: 20 }, (_, i) => (i === 7 ? null : Buffer.from(`k${i}`)));
      const produced = await Promise.allSettled(
        keys.map((key) => bus.produce({ topic, partition: 0, key, value: Buffer.from('v') })),
      );
      expect(
        produced.flatMap((result, i) => (result.status === 'rejected' ? [[i, result.reason.code]] : [])),
      ).toEqual([[7, 'POISON']]);
      expect((await readAll(topic)).map(({ key }) => key?.toString())).toEqual(
        keys.flatMap((key) => (key === null ? [] : [key.toString()])),
      );
    });

    it('goes on to other topics when one that was written to is deleted', async () => {
      const [deleted, kept] = [await createTopic(run, bus, 1), await createTopic(run, bus, 1)];
      for (const topic of [deleted, kept]) await produceTexts(run, bus, topic, 0, ['before']);
      await bus.admin.deleteTopics([deleted]);
      // What comes before the broker has carried it out may still be stored.
      const refused = (async () => {
        for (;;) await bus.produce({ topic: deleted, partition: 0, key: null, value: Buffer.from('v') });
      })();
      const isRefused = expect(refused).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
      // Longer than metadata lives, so that it is read again with the deleted topic in mind.
      for (let i = 0; i < 12; i++) {
        await produceTexts(run, bus, kept, 0, [`v${i}`]);
        await run.pass(500);
      }
      await isRefused;
      expect((await readAll(kept)).map(({ value }) => value?.toString())).toEqual([
        'before',
        ...texts('v', 12),
      ]);
    });

    it('puts records into partitions that the topic only just got, and into no others', async () => {
      const topic = await createTopic(run, bus, 1);
      await produceTexts(run, bus, topic, 0, ['p0']);
      const other = await run.connect();
      await other.admin.growTopic(topic, 5);
      await Promise.all(
        [1, 2, 3, 4].map((partition) => produceTexts(run, bus, topic, partition, [`p${partition}`])),
      );
      const stored = (await readAll(topic))
        .map(({ partition, value }) => [partition, value?.toString()])
        .sort();
      expect(stored).toEqual([0, 1, 2, 3, 4].map((partition) => [partition, `p${partition}`]));
    });
  });

  describe('consuming', () => {
    const subscribe = (topic: string, mode: 'acknowledging' | 'holding' = 'acknowledging', on = bus) =>
      Recorder.subscribe(run, on, { group, topics: [topic], startAt: 'earliest' }, mode);

    it('starts at the first record kept where the committed offset was deleted, and says so', async () => {
      const topic = await createTopic(run, bus, 1);
      await produceTexts(run, bus, topic, 0, texts('v', 10));
      const first = await subscribe(topic, 'holding');
      await run.eventually(() => first.records.length === 10, 'the records arrived');
      first.acknowledge('v0', 'v1');
      await eventuallyCommitted(run, bus, group, topic, [2]);
      await first.subscription.close();
      await deleteRecordsBelow(topic, 6);
      const second = await subscribe(topic);
      await run.eventually(() => second.records.length === 4, 'what is kept arrived');
      expect(second.values()).toEqual(['v6', 'v7', 'v8', 'v9']);
      await eventuallyCommitted(run, bus, group, topic, [10]);
    });

    it('goes on at the first record kept when its position is deleted while it reads', async () => {
      const topic = await createTopic(run, bus, 1);
      await produceTexts(run, bus, topic, 0, texts('v', 3));
      const recorder = await Recorder.subscribe(
        run,
        bus,
        { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 1 },
        'holding',
      );
      await run.eventually(() => recorder.records.length === 1, 'the first record arrived');
      // It has a record or two in stock and is paused; what follows is deleted under it.
      for (let i = 0; i < 5; i++) await produceTexts(run, bus, topic, 0, texts(`w${i}-`, 10));
      await deleteRecordsBelow(topic, 50);
      recorder.acknowledging = true;
      recorder.acknowledge(...recorder.values());
      await run.eventually(() => recorder.values().includes('w4-9'), 'what is kept arrived');
      await eventuallyCommitted(run, bus, group, topic, [53]);
      expect(recorder.errors.map(String).join()).toMatch(/not in the log/);
    });

    it('delivers nothing that a transaction aborted, and is not held up by its markers', async () => {
      const topic = await createTopic(run, bus, 1);
      const produce = async (value: string, end: 'commit' | 'abort') =>
        withProducer(
          { transactionalId: uniqueName('tx'), idempotent: true, maxInFlightRequests: 1 },
          async (producer) => {
            const transaction = await producer.transaction();
            await transaction.send({ topic, messages: [{ key: 'k', value, partition: 0 }] });
            await transaction[end]();
          },
        );
      await produce('first', 'commit');
      await produce('aborted', 'abort');
      await produce('second', 'commit');
      await produce('aborted too', 'abort');
      const recorder = await subscribe(topic);
      await run.eventually(() => recorder.records.length >= 2, 'the committed records arrived');
      // Four records and four markers: past them all, so that the group shows no lag.
      await eventuallyCommitted(run, bus, group, topic, [8]);
      expect(recorder.values()).toEqual(['first', 'second']);
      expect((await readAll(topic)).map(({ value }) => value?.toString())).toEqual(['first', 'second']);
    });

    it.each(['GZIP', 'LZ4', 'ZSTD'] as const)('reads records that were compressed with %s', async (codec) => {
      const topic = await createTopic(run, bus, 1);
      const values = texts('compressible '.repeat(30), 50);
      await withProducer({}, async (producer) => {
        await producer.send({
          topic,
          compression: kafkajs.CompressionTypes[codec] as CompressionTypes,
          messages: values.map((value) => ({ key: 'k', value, partition: 0, headers: { h: 'v' } })),
        });
      });
      const records = await readAll(topic);
      expect(records.map(({ value }) => value?.toString())).toEqual(values);
      expect(records[7]?.headers['h']?.toString()).toBe('v');
    });

    it('takes up the new partitions of a topic that grows', async () => {
      const topic = await createTopic(run, bus, 1);
      const [recorder, reading] = [await subscribe(topic), [] as InboundRecord[]];
      await bus.read({ topics: [topic], startAt: 'latest' }, (batch) => reading.push(...batch));
      await bus.admin.growTopic(topic, 3);
      for (const partition of [0, 1, 2]) await produceTexts(run, bus, topic, partition, [`p${partition}`]);
      await run.eventually(
        () => recorder.records.length === 3 && reading.length === 3,
        'the records of all partitions arrived',
      );
      expect(recorder.lost).toEqual([]);
      expect(recorder.revoked).toEqual([]);
    });

    it('lives on when a topic that it reads is deleted', async () => {
      const [deleted, kept] = [await createTopic(run, bus, 1), await createTopic(run, bus, 1)];
      const recorder = await Recorder.subscribe(
        run,
        bus,
        { group, topics: [deleted, kept], startAt: 'earliest' },
        'acknowledging',
      );
      for (const topic of [deleted, kept]) await produceTexts(run, bus, topic, 0, ['before']);
      await run.eventually(() => recorder.records.length === 2, 'both records arrived');
      await bus.admin.deleteTopics([deleted]);
      await run.pass(2 * run.quietMs);
      await produceTexts(run, bus, kept, 0, texts('v', 5));
      await run.eventually(() => recorder.values().includes('v4'), 'the topic that is kept goes on');
    });

    it('shares a group between two members of one client', async () => {
      const topic = await createTopic(run, bus, 4);
      const members = [await subscribe(topic), await subscribe(topic)];
      await run.eventually(
        () => members.every((member) => member.partitions().length === 2),
        'both own two partitions',
      );
      for (let partition = 0; partition < 4; partition++)
        await produceTexts(run, bus, topic, partition, texts(`p${partition}-`, 20));
      await eventuallyCommitted(run, bus, group, topic, [20, 20, 20, 20]);
      expect(members.flatMap((member) => member.records)).toHaveLength(80);
    });

    it('stops quickly with all partitions paused', async () => {
      const topic = await createTopic(run, bus, 2);
      for (const partition of [0, 1]) await produceTexts(run, bus, topic, partition, texts('v', 50));
      const recorder = await Recorder.subscribe(
        run,
        bus,
        { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 1 },
        'holding',
      );
      await run.eventually(() => recorder.records.length === 2, 'both partitions wait');
      await run.pass(run.quietMs);
      const startedAt = run.clock.monotonicMs();
      await recorder.subscription.close();
      // kafkajs by itself waits for its longest fetch, of five seconds.
      expect(run.clock.monotonicMs() - startedAt).toBeLessThan(4_000);
    });

    it('does not spin while there is nothing to do', async () => {
      const topic = await createTopic(run, bus, 1);
      await subscribe(topic);
      await run.pass(run.quietMs);
      let timers = 0;
      const hook = createHook({
        init: (_, type) => {
          if (type === 'Timeout') timers++;
        },
      }).enable();
      await run.pass(2_000);
      hook.disable();
      // Unpatched it is some 870 a second for each connection.
      expect(timers).toBeLessThan(400);
      expect(warnings.filter(({ name }) => name === 'TimeoutNegativeWarning')).toEqual([]);
    });
  });

  it('closes while a record waits that no broker takes, after its time, and rejects it', async () => {
    const own = await run.connect({ drainTimeoutMs: 500 });
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, own, topic, 0, ['before']);
    await run.kill(own);
    const produced = own.produce({ topic, partition: 0, key: null, value: Buffer.from('v') });
    const refused = expect(produced).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    await run.pass(300);
    await own.close();
    await refused;
  });
});

describe('a group with members on both clients', () => {
  it('spreads its partitions over them, and hands them over drained', async () => {
    const runs = CLIENTS.map((client) => kafkaFactory(client, sharedBrokers()));
    const [first, second] = runs;
    if (first === undefined || second === undefined) throw new Error('two clients');
    try {
      const [a, b] = [await first.connect(), await second.connect()];
      const topic = await createTopic(first, a, 4);
      const options = { group: uniqueName('group'), topics: [topic], startAt: 'earliest' } as const;
      const members = [
        await Recorder.subscribe(first, a, options, 'acknowledging'),
        await Recorder.subscribe(second, b, options, 'acknowledging'),
      ];
      await first.eventually(
        () => members.every((member) => member.partitions().length === 2),
        'both own two partitions',
      );
      for (let partition = 0; partition < 4; partition++)
        await produceTexts(first, a, topic, partition, texts(`p${partition}-`, 20));
      await eventuallyCommitted(first, a, options.group, topic, [20, 20, 20, 20]);
      const [kept] = members;
      await members[1]?.subscription.close();
      await first.eventually(() => kept?.partitions().length === 4, 'the one that stayed owns all');
      const all = members.flatMap((member) =>
        member.records.map(
          ({ partition, value }: TopicPartition & { value: Buffer | null }) => `${partition} ${value}`,
        ),
      );
      expect(new Set(all).size).toBe(80);
      expect(all).toHaveLength(80);
    } finally {
      await Promise.all(runs.map((run) => run.close()));
    }
  });
});

describe('on kafkajs, a codec that is not known', () => {
  it('halts the partition with an error that says so, and loses nothing', async () => {
    const run = kafkaFactory('kafkajs', sharedBrokers());
    const bus = await run.connect();
    const topic = await createTopic(run, bus, 1);
    const { ZSTD } = kafkajs.CompressionTypes;
    const messages = texts('v', 10).map((value) => ({ key: 'k', value, partition: 0 }));
    await withProducer({}, async (producer) => {
      await producer.send({ topic, compression: ZSTD, messages });
    });
    const codecs = CODECS as Map<number, Codec>;
    codecs.delete(ZSTD);
    try {
      const recorder = await Recorder.subscribe(
        run,
        bus,
        { group: uniqueName('group'), topics: [topic], startAt: 'earliest' },
        'acknowledging',
      );
      await run.eventually(() => recorder.errors.length > 0, 'the subscriber was told');
      expect(String(recorder.errors[0])).toMatch(/compression 4/);
      expect(recorder.records).toEqual([]);
      codecs.set(ZSTD, zstd);
      await run.eventually(
        () => recorder.records.length === 10,
        'the records arrived once the codec was there',
      );
    } finally {
      codecs.set(ZSTD, zstd);
      await run.close();
    }
  });
});
