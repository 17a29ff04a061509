import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InboundRecord, MessageBus } from '../../src/ports/message-bus.ts';
import {
  type Client,
  kafkaFactory,
  type OwnBrokers,
  restartableFactory,
  startBrokers,
} from '../conformance/kafka.fixture.ts';
import {
  createTopic,
  eventuallyCommitted,
  Recorder,
  texts,
  uniqueName,
} from '../conformance/message-bus.fixture.ts';
import type { RestartableBusFactory } from '../conformance/message-bus.suite.ts';

/** A broker that is killed and comes back, while a client of each kind writes, reads and commits. */

const PARTITIONS = 3;
const RECORDS = 1_500;
const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];

let brokers: OwnBrokers;
beforeAll(async () => {
  brokers = await startBrokers(1);
});
afterAll(() => brokers?.stop());

/** Everything that lies in the topic, per partition, as somebody else sees it. */
async function outsideView(topic: string): Promise<string[][]> {
  const run = kafkaFactory('kafkajs', brokers.addresses);
  const bus = await run.connect();
  const stored: string[][] = Array.from({ length: PARTITIONS }, () => []);
  const reader = await bus.read({ topics: [topic], startAt: 'earliest' }, (records) => {
    for (const { partition, value } of records) stored[partition]?.push(value?.toString() ?? 'null');
  });
  await reader.caughtUp;
  await run.close();
  return stored;
}

const expectedOf = (partition: number): string[] =>
  texts('v', RECORDS).filter((_, i) => i % PARTITIONS === partition);

/** Without the repetitions that an attempt without an answer can leave. */
function firstOccurrences(values: readonly string[]): string[] {
  return [...new Set(values)];
}

describe.each(CLIENTS)('on %s', (client) => {
  let run: RestartableBusFactory;
  beforeEach(() => {
    run = restartableFactory(client, brokers);
  });
  afterEach(() => run.close());

  /** Produces steadily, and kills the broker in the middle of it. */
  const produceThroughDeath = async (bus: MessageBus, topic: string): Promise<void> => {
    const produced: Promise<void>[] = [];
    for (const [i, value] of texts('v', RECORDS).entries()) {
      produced.push(bus.produce({ topic, partition: i % PARTITIONS, key: null, value: Buffer.from(value) }));
      if (i % 10 === 0) await run.pass(2);
      if (i === RECORDS / 3) await run.stopBroker();
      if (i === RECORDS / 2) await run.startBroker();
    }
    await Promise.all(produced);
  };

  it('has every acknowledged record, in order and where it was sent, though the broker died mid-send', async () => {
    const bus = await run.connect();
    const topic = await createTopic(run, bus, PARTITIONS);
    await produceThroughDeath(bus, topic);
    for (const [partition, stored] of (await outsideView(topic)).entries()) {
      expect(firstOccurrences(stored)).toEqual(expectedOf(partition));
    }
  });

  it('has them exactly once with an idempotent producer', async () => {
    const idempotent = kafkaFactory(client, brokers.addresses, { idempotent: true });
    const bus = await idempotent.connect();
    const topic = await createTopic(run, bus, PARTITIONS);
    await produceThroughDeath(bus, topic);
    for (const [partition, stored] of (await outsideView(topic)).entries())
      expect(stored).toEqual(expectedOf(partition));
    await idempotent.close();
  });

  it('delivers everything and commits to the end, though the broker died while it was read', async () => {
    const bus = await run.connect();
    const topic = await createTopic(run, bus, PARTITIONS);
    const group = uniqueName('group');
    const recorder = await Recorder.subscribe(
      run,
      bus,
      { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 50 },
      'acknowledging',
    );
    const read: InboundRecord[] = [];
    await bus.read({ topics: [topic], startAt: 'earliest' }, (records) => read.push(...records));
    await produceThroughDeath(bus, topic);
    const stored = await outsideView(topic);
    await run.eventually(() => new Set(recorder.values()).size === RECORDS, 'the group got everything');
    await run.eventually(() => read.length >= stored.flat().length, 'the reader got everything');
    await eventuallyCommitted(
      run,
      bus,
      group,
      topic,
      stored.map(({ length }) => length),
    );
    for (const [partition, values] of stored.entries()) {
      expect(firstOccurrences(recorder.values(partition))).toEqual(expectedOf(partition));
      expect(
        read.filter((record) => record.partition === partition).map(({ value }) => value?.toString()),
      ).toEqual(values);
    }
  });
});
