import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MessageBus, TopicSpec } from '../../src/ports/message-bus.ts';
import {
  type BusFactory,
  createTopic,
  produceTexts,
  rejection,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

export function adminConformance(create: CreateFactory): void {
  let run: BusFactory;
  let bus: MessageBus;

  beforeEach(async () => {
    run = await create();
    bus = await run.connect();
  });
  afterEach(() => run.close());

  const spec = (partitions: number): TopicSpec => ({
    name: uniqueName('topic'),
    partitions,
    replication: 1,
    config: { 'retention.ms': '600000' },
  });

  /** Metadata may be some seconds old. */
  const eventually = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (let attempt = 0; attempt < 150; attempt++) {
      if (await run.settle(isSo())) return;
      await run.pass(100);
    }
    throw new Error(`${what} did not happen`);
  };

  it('creates what is missing, answers the names created, and leaves the rest as it is', async () => {
    const [first, second] = [spec(2), spec(3)];
    expect(await run.settle(bus.admin.createTopics([first]))).toEqual([first.name]);
    expect(await run.settle(bus.admin.createTopics([{ ...first, partitions: 5 }, second]))).toEqual([
      second.name,
    ]);
    expect(await run.settle(bus.admin.createTopics([first, second]))).toEqual([]);
    expect(await run.settle(bus.admin.createTopics([]))).toEqual([]);
    expect(await run.settle(bus.partitionCount(first.name))).toBe(2);
    expect(await run.settle(bus.partitionCount(second.name))).toBe(3);
  });

  it('creates a topic once when several clients try at the same time', async () => {
    const topic = spec(2);
    const clients = [bus, await run.connect(), await run.connect()];
    const created = await run.settle(
      Promise.all(clients.map((client) => client.admin.createTopics([topic]))),
    );
    expect(created.flat()).toEqual([topic.name]);
  });

  it('raises the number of partitions, and never lowers it', async () => {
    const topic = await createTopic(run, bus, 2);
    await run.settle(bus.admin.growTopic(topic, 4));
    await eventually('four partitions', async () => (await bus.partitionCount(topic)) === 4);
    await run.settle(bus.admin.growTopic(topic, 4));
    await run.settle(bus.admin.growTopic(topic, 1));
    expect(await run.settle(bus.partitionCount(topic))).toBe(4);
    await produceTexts(run, bus, topic, 3, ['v']);
    const watermarks = await run.settle(bus.admin.watermarks(topic));
    expect(watermarks.map(({ high }) => high)).toEqual([0, 0, 0, 1]);
  });

  it("tells a topic's configuration, sets values of it, and leaves its others", async () => {
    const [topic, other] = [spec(1), spec(1)];
    await run.settle(
      bus.admin.createTopics([
        { ...topic, config: { 'retention.ms': '600000', 'max.message.bytes': '2000' } },
        other,
      ]),
    );
    await run.settle(bus.admin.configureTopic(topic.name, { 'retention.ms': '-1', 'segment.ms': '700000' }));
    const missing = uniqueName('missing');
    const configs = await run.settle(bus.admin.topicConfigs([topic.name, other.name, missing]));
    expect(configs.get(topic.name)).toMatchObject({
      'retention.ms': '-1',
      'max.message.bytes': '2000',
      'segment.ms': '700000',
    });
    expect(configs.get(other.name)).toMatchObject({ 'retention.ms': '600000' });
    expect(configs.has(missing)).toBe(false);
    expect(await run.settle(bus.admin.topicConfigs([]))).toEqual(new Map());
    const large = bus.produce({ topic: topic.name, partition: 0, key: null, value: Buffer.alloc(3_000) });
    expect(await rejection(run, large)).toMatchObject({ code: 'TOO_LARGE' });
  });

  it("tells a topic's partitions from metadata that is at most some seconds old", async () => {
    const topic = await createTopic(run, bus, 1);
    const other = await run.connect();
    expect(await run.settle(other.partitionCount(topic))).toBe(1);
    await run.settle(bus.admin.growTopic(topic, 3));
    await eventually(
      'the growth reached the other client',
      async () => (await other.partitionCount(topic)) === 3,
    );
  });

  it.each([
    ['partitions', (topic: string) => bus.partitionCount(topic)],
    ['first and next offsets', (topic: string) => bus.admin.watermarks(topic)],
  ])('says BUS_UNAVAILABLE to questions about the %s of a topic that does not exist', async (_, ask) => {
    const error = await rejection(run, ask(uniqueName('missing')));
    expect(error).toMatchObject({ code: 'BUS_UNAVAILABLE' });
    expect(String(error)).toMatch(/`millrace topics apply`.*MILLRACE_PREFIX/);
  });

  it('lists topics, and deletes them', async () => {
    const [kept, gone] = [await createTopic(run, bus, 1), await createTopic(run, bus, 1)];
    await run.settle(bus.admin.deleteTopics([gone]));
    await eventually('the deletion', async () => !(await bus.admin.listTopics()).includes(gone));
    expect(await run.settle(bus.admin.listTopics())).toContain(kept);
  });

  it('tells the first offset kept and the next one, per partition', async () => {
    const topic = await createTopic(run, bus, 3);
    await produceTexts(run, bus, topic, 1, texts('v', 5));
    await produceTexts(run, bus, topic, 2, ['v']);
    expect(await run.settle(bus.admin.watermarks(topic))).toEqual([
      { partition: 0, low: 0, high: 0 },
      { partition: 1, low: 0, high: 5 },
      { partition: 2, low: 0, high: 1 },
    ]);
  });

  it('answers -1 where a group has committed nothing', async () => {
    const topic = await createTopic(run, bus, 2);
    const committed = await run.settle(bus.admin.committed(uniqueName('group'), topic));
    expect([...committed].sort()).toEqual([
      [0, -1],
      [1, -1],
    ]);
  });
}
