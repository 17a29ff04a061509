import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MessageBus, SubscribeOptions } from '../../src/ports/message-bus.ts';
import {
  type BusFactory,
  createTopic,
  eventuallyCommitted,
  later,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

export function deliveryConformance(create: CreateFactory): void {
  let run: BusFactory;
  let bus: MessageBus;
  let group: string;

  beforeEach(async () => {
    run = await create();
    bus = await run.connect();
    group = uniqueName('group');
  });
  afterEach(() => run.close());

  const subscribe = (
    topics: readonly string[],
    mode: 'acknowledging' | 'holding',
    options: Partial<SubscribeOptions> = {},
  ): Promise<Recorder> =>
    Recorder.subscribe(run, bus, { group, topics, startAt: 'earliest', ...options }, mode);

  it('brings every record once, of one partition per call, in offset order', async () => {
    const topic = await createTopic(run, bus, 3);
    for (const partition of [0, 1, 2])
      await produceTexts(run, bus, topic, partition, texts(`p${partition}-`, 50));
    const recorder = await subscribe([topic], 'acknowledging');
    for (const partition of [0, 1, 2])
      await produceTexts(run, bus, topic, partition, texts(`later${partition}-`, 50));
    await run.eventually(() => recorder.records.length >= 300, 'all records arrived');
    for (const partition of [0, 1, 2]) {
      const expected = [...texts(`p${partition}-`, 50), ...texts(`later${partition}-`, 50)];
      expect(recorder.values(partition)).toEqual(expected);
    }
    for (const batch of recorder.batches) {
      expect(new Set(batch.map(({ partition }) => partition)).size).toBe(1);
      expect(new Set(batch.map(({ topic: name }) => name))).toEqual(new Set([topic]));
    }
  });

  it('reads several topics under one group', async () => {
    const topics = [await createTopic(run, bus, 1), await createTopic(run, bus, 2)];
    const recorder = await subscribe(topics, 'acknowledging');
    for (const topic of topics) await produceTexts(run, bus, topic, 0, [topic]);
    await run.eventually(() => recorder.records.length === 2, 'a record of each topic arrived');
    expect(recorder.values().sort()).toEqual([...topics].sort());
    expect(recorder.records.every(({ topic, value }) => topic === value?.toString())).toBe(true);
    expect(recorder.subscription.assigned()).toHaveLength(3);
  });

  it('gives every group all records', async () => {
    const topic = await createTopic(run, bus, 1);
    const first = await subscribe([topic], 'acknowledging');
    const second = await subscribe([topic], 'acknowledging', { group: uniqueName('group') });
    await produceTexts(run, bus, topic, 0, texts('v', 20));
    await run.eventually(() => first.records.length === 20 && second.records.length === 20, 'both got all');
  });

  it('starts at the latest record where asked to and nothing is committed', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('old', 5));
    const recorder = await subscribe([topic], 'acknowledging', { startAt: 'latest' });
    await run.eventually(() => recorder.partitions().length === 1, 'the partition was assigned');
    await run.pass(run.quietMs);
    await produceTexts(run, bus, topic, 0, texts('new', 5));
    await run.eventually(() => recorder.records.length >= 5, 'the new records arrived');
    expect(recorder.values()).toEqual(texts('new', 5));
  });

  it('commits what is acknowledged, without being asked', async () => {
    const topic = await createTopic(run, bus, 2);
    await produceTexts(run, bus, topic, 0, texts('a', 30));
    await produceTexts(run, bus, topic, 1, texts('b', 7));
    await subscribe([topic], 'acknowledging');
    await eventuallyCommitted(run, bus, group, topic, [30, 7]);
  });

  it('commits only below the first unacknowledged record, and delivers again from there', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('v', 10));
    const first = await subscribe([topic], 'holding');
    await run.eventually(() => first.records.length === 10, 'all records arrived');
    first.acknowledge('v9', 'v8', 'v5', 'v4', 'v1', 'v0', 'v2', 'v6', 'v7');
    await eventuallyCommitted(run, bus, group, topic, [3]);
    await run.settle(first.subscription.close());
    await eventuallyCommitted(run, bus, group, topic, [3]);
    const second = await subscribe([topic], 'holding');
    await run.eventually(() => second.records.length >= 7, 'the rest was delivered again');
    expect(second.values()).toEqual(['v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9']);
  });

  it('delivers again what is not acknowledged to a subscriber that throws, under a new assignment', async () => {
    const topic = await createTopic(run, bus, 2);
    const recorder = await subscribe([topic], 'acknowledging');
    recorder.throwing = true;
    await produceTexts(run, bus, topic, 0, texts('a', 5));
    await run.eventually(() => recorder.lost.length > 0, 'the partition was lost');
    await produceTexts(run, bus, topic, 1, texts('b', 5));
    await run.eventually(() => recorder.lost.length > 1, 'the other partition was lost');
    recorder.throwing = false;
    await eventuallyCommitted(run, bus, group, topic, [5, 5]);
    const [first] = recorder.records.filter(({ partition }) => partition === 0);
    expect(recorder.records.at(-1)?.assignment).not.toBe(first?.assignment);
    expect([recorder.values(0).slice(-5), recorder.values(1).slice(-5)]).toEqual([
      texts('a', 5),
      texts('b', 5),
    ]);
    expect(recorder.errors[0]).toMatchObject({ message: 'the subscriber threw' });
    expect(recorder.partitions()).toEqual([0, 1]);
  });

  it('goes on from the gap once that is closed', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('v', 10));
    const recorder = await subscribe([topic], 'holding');
    await run.eventually(() => recorder.records.length === 10, 'all records arrived');
    recorder.acknowledge('v1', 'v2', 'v3', 'v5');
    await run.pass(run.quietMs);
    recorder.acknowledge('v0');
    await eventuallyCommitted(run, bus, group, topic, [4]);
  });

  it('commits nothing while the first record is unfinished', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('v', 10));
    const recorder = await subscribe([topic], 'holding');
    await run.eventually(() => recorder.records.length === 10, 'all records arrived');
    recorder.acknowledge(...texts('v', 10).slice(1));
    await run.pass(run.quietMs);
    await run.settle(recorder.subscription.close());
    const committed = await run.settle(bus.admin.committed(group, topic));
    expect(committed.get(0)).toBeOneOf([-1, 0]);
  });

  it('stops a partition at its unacknowledged records, and goes on as they are acknowledged', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('v', 50));
    const recorder = await subscribe([topic], 'holding', { unacknowledgedMax: 10 });
    await run.eventually(() => recorder.records.length >= 10, 'delivery began');
    await run.pass(run.quietMs);
    expect(recorder.values()).toEqual(texts('v', 10));
    recorder.acknowledge('v2', 'v3', 'v9');
    await run.eventually(() => recorder.records.length >= 13, 'delivery went on');
    await run.pass(run.quietMs);
    expect(recorder.values()).toEqual(texts('v', 13));
    recorder.acknowledging = true;
    recorder.acknowledge(...recorder.values());
    await run.eventually(() => recorder.records.length === 50, 'all records arrived');
    await eventuallyCommitted(run, bus, group, topic, [50]);
  });

  it('stops a partition at its unacknowledged bytes, and goes on as they are acknowledged', async () => {
    const topic = await createTopic(run, bus, 1);
    const values = texts('v', 40).map((text) => text.padEnd(1_000, '.'));
    await produceTexts(run, bus, topic, 0, values);
    const recorder = await subscribe([topic], 'holding', { unacknowledgedBytesMax: 10_000 });
    await run.eventually(() => recorder.records.length >= 4, 'delivery began');
    await run.pass(run.quietMs);
    // Key and value have the same bytes here; what else counts is the adapter's affair.
    const held = recorder.records.length;
    expect(held).toBeLessThanOrEqual(11);
    recorder.acknowledging = true;
    recorder.acknowledge(...recorder.values());
    await run.eventually(() => recorder.records.length === 40, 'all records arrived');
  });

  it('delivers a record that is larger than the bytes that may be unacknowledged', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, ['large'.padEnd(5_000, '.'), 'next']);
    const recorder = await subscribe([topic], 'acknowledging', { unacknowledgedBytesMax: 1_000 });
    await run.eventually(() => recorder.records.length === 2, 'both records arrived');
  });

  it('does not let a slow partition stall another', async () => {
    const topic = await createTopic(run, bus, 2);
    await produceTexts(run, bus, topic, 0, texts('slow', 40));
    const recorder = await subscribe([topic], 'holding', { unacknowledgedMax: 5 });
    await run.eventually(() => recorder.values(0).length === 5, 'the slow partition is full');
    for (let round = 0; round < 4; round++) {
      await produceTexts(run, bus, topic, 1, texts(`fast${round}-`, 5));
      await run.eventually(() => recorder.values(1).length === 5 * (round + 1), `round ${round} arrived`);
      recorder.acknowledge(...recorder.values(1));
    }
    expect(recorder.values(0)).toEqual(texts('slow', 5));
  });

  it('tells how long ago the broker answered a fetch, though there are no records', async () => {
    const topic = await createTopic(run, bus, 1);
    const recorder = await subscribe([topic], 'acknowledging');
    await run.eventually(() => recorder.partitions().length === 1, 'the partition was assigned');
    await run.pass(2 * run.quietMs);
    await run.eventually(() => recorder.subscription.sinceLastFetchMs() < 5_000, 'a fetch was answered');
    expect(recorder.subscription.sinceLastFetchMs()).toBeGreaterThanOrEqual(0);
  });

  it('delivers nothing after close, and has owned nothing since', async () => {
    const topic = await createTopic(run, bus, 2);
    const recorder = await subscribe([topic], 'acknowledging');
    await produceTexts(run, bus, topic, 0, texts('v', 5));
    await run.eventually(() => recorder.records.length === 5, 'the records arrived');
    await run.settle(recorder.subscription.close());
    expect(
      recorder.revoked
        .flat()
        .map(({ partition }) => partition)
        .sort(),
    ).toEqual([0, 1]);
    expect(recorder.subscription.assigned()).toEqual([]);
    const calls = recorder.assigned.length + recorder.revoked.length;
    await produceTexts(run, bus, topic, 0, texts('late', 5));
    await run.pass(2 * run.quietMs);
    expect(recorder.values()).toEqual(texts('v', 5));
    expect(recorder.assigned.length + recorder.revoked.length).toBe(calls);
    await run.settle(recorder.subscription.close());
  });

  it('close waits for the drain, and what was acknowledged in it is committed', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, texts('v', 8));
    const recorder = await subscribe([topic], 'holding');
    await run.eventually(() => recorder.records.length === 8, 'the records arrived');
    let drained = false;
    recorder.onRevoked = async () => {
      await later(run, 20);
      recorder.acknowledge(...texts('v', 6));
      drained = true;
    };
    await run.settle(bus.close());
    expect(drained).toBe(true);
    await eventuallyCommitted(run, await run.connect(), group, topic, [6]);
  });
}
