import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InboundRecord, MessageBus } from '../../src/ports/message-bus.ts';
import { type Client, kafkaFactory, type OwnBrokers, startBrokers } from '../conformance/kafka.fixture.ts';
import {
  type BusFactory,
  eventuallyCommitted,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from '../conformance/message-bus.fixture.ts';

/** A cluster of three of which one broker dies: elections, refusals and coordinators that move. */

const PARTITIONS = 6;
const RECORDS = 3_000;
const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];

let brokers: OwnBrokers;
beforeAll(async () => {
  brokers = await startBrokers(3);
}, 180_000);
afterAll(() => brokers?.stop());

describe.each(CLIENTS)('on %s', (client) => {
  let run: BusFactory;
  let bus: MessageBus;
  beforeEach(async () => {
    await Promise.all(brokers.processes.map((broker) => broker.start()));
    run = kafkaFactory(client, brokers.addresses);
    bus = await run.connect();
  });
  afterEach(() => run.close());

  const createTopic = async (inSync: number): Promise<string> => {
    const name = uniqueName('topic');
    const config = { 'min.insync.replicas': String(inSync) };
    await bus.admin.createTopics([{ name, partitions: PARTITIONS, replication: 3, config }]);
    return name;
  };

  const stored = async (topic: string): Promise<string[][]> => {
    const values: string[][] = Array.from({ length: PARTITIONS }, () => []);
    const reader = await bus.read(
      { topics: [topic], startAt: 'earliest' },
      (records: readonly InboundRecord[]) => {
        for (const { partition, value } of records) values[partition]?.push(value?.toString() ?? 'null');
      },
    );
    await reader.caughtUp;
    await reader.close();
    return values;
  };

  it.each([0, 1, 2])(
    'has every acknowledged record, in order, though broker %i died mid-send',
    async (victim) => {
      const topic = await createTopic(2);
      const group = uniqueName('group');
      const recorder = await Recorder.subscribe(
        run,
        bus,
        { group, topics: [topic], startAt: 'earliest' },
        'acknowledging',
      );
      const produced: Promise<void>[] = [];
      for (const [i, value] of texts('v', RECORDS).entries()) {
        produced.push(
          bus.produce({ topic, partition: i % PARTITIONS, key: null, value: Buffer.from(value) }),
        );
        if (i % 10 === 0) await run.pass(2);
        if (i === RECORDS / 3) await brokers.processes[victim]?.kill();
      }
      await Promise.all(produced);
      const values = await stored(topic);
      for (const [partition, own] of values.entries()) {
        expect([...new Set(own)]).toEqual(texts('v', RECORDS).filter((_, i) => i % PARTITIONS === partition));
      }
      await run.eventually(() => new Set(recorder.values()).size === RECORDS, 'the group got everything');
      // Its coordinator may be the one that died.
      await eventuallyCommitted(
        run,
        bus,
        group,
        topic,
        values.map(({ length }) => length),
      );
    },
  );

  it('stays pending where not enough replicas are in sync, goes on elsewhere, and recovers by itself', async () => {
    const [refusing, other] = [await createTopic(3), await createTopic(2)];
    for (const topic of [refusing, other]) await produceTexts(run, bus, topic, 0, ['before']);
    await brokers.processes[2]?.kill();
    // Until the dead broker has fallen out of the in-sync replicas a record waits for it; then it is refused.
    let settled = 0;
    const waiting = texts('v', 60).map((value, i) =>
      bus
        .produce({ topic: refusing, partition: i % PARTITIONS, key: null, value: Buffer.from(value) })
        .then(() => settled++),
    );
    for (let i = 0; i < 20; i++) {
      await produceTexts(run, bus, other, i % PARTITIONS, texts(`o${i}-`, 5));
      await run.pass(500);
    }
    expect(settled).toBe(0);
    await brokers.processes[2]?.start();
    await Promise.all(waiting);
    for (const [partition, own] of (await stored(refusing)).entries()) {
      const values = [...new Set(own)].filter((value) => value !== 'before');
      expect(values).toEqual(texts('v', 60).filter((_, i) => i % PARTITIONS === partition));
    }
  });
});
