import { describe, expect, it } from 'vitest';
import { MemoryWorld } from './bus.fixture.ts';

const MINUTE_MS = 60_000;

describe('what a topic in memory keeps', () => {
  it('is as old as its retention at most', async () => {
    const world = new MemoryWorld();
    const bus = world.connect();
    await world.createTopic(bus, 2, { 'retention.ms': `${10 * MINUTE_MS}` });
    await world.produce(bus, 0, 'old');
    await world.clock.advanceBy(6 * MINUTE_MS);
    await world.produce(bus, 0, 'newer');
    await world.clock.advanceBy(5 * MINUTE_MS);
    expect(await world.kept(bus)).toEqual(['newer']);
    expect(await world.settle(bus.admin.watermarks('t'))).toEqual([
      { partition: 0, low: 1, high: 2 },
      { partition: 1, low: 0, high: 0 },
    ]);
    await world.clock.advanceBy(20 * MINUTE_MS);
    const member = await world.subscribe(bus);
    await world.produce(bus, 0, 'newest');
    await world.clock.advanceBy(1);
    expect(member.values()).toEqual(['newest']);
    expect(member.records[0]?.offset).toBe(2);
    expect(member.errors).toEqual([]);
  });

  it.each([{ 'retention.ms': '-1' }, { 'cleanup.policy': 'compact', 'retention.ms': '1000' }])(
    'is kept for ever under %j',
    async (config) => {
      const world = new MemoryWorld();
      const bus = world.connect();
      await world.createTopic(bus, 1, config);
      await world.produce(bus, 0, 'a');
      await world.clock.advanceBy(1_000 * 24 * 60 * MINUTE_MS);
      await world.produce(bus, 0, 'b');
      expect(await world.kept(bus)).toEqual(['a', 'b']);
    },
  );

  it('is bounded in bytes: the oldest go first, from whatever partition, and offsets go on', async () => {
    const world = new MemoryWorld({ topicBytesMax: 100_000 });
    const bus = world.connect();
    await world.createTopic(bus, 2, { 'retention.ms': '-1' });
    const large = (name: string): string => name.padEnd(4_000, '.');
    await world.produce(bus, 1, large('first'));
    await world.clock.advanceBy(1);
    for (let i = 0; i < 40; i++) {
      await world.produce(bus, 0, large(`v${i}-`));
      await world.clock.advanceBy(1);
    }
    const kept = (await world.kept(bus, 0)).map((value) => value.split('-')[0]);
    expect(kept.length).toBeGreaterThan(5);
    expect(kept.length).toBeLessThan(13);
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => `v${40 - kept.length + i}`));
    expect(await world.kept(bus, 1)).toEqual([]);
    expect(await world.settle(bus.admin.watermarks('t'))).toEqual([
      { partition: 0, low: 40 - kept.length, high: 40 },
      { partition: 1, low: 1, high: 1 },
    ]);
  });

  it('leaves a subscriber that is too slow what is still there, and tells it', async () => {
    const world = new MemoryWorld({ topicBytesMax: 100_000 });
    const bus = world.connect();
    await world.createTopic(bus, 1);
    const member = await world.subscribe(bus, { unacknowledgedMax: 1 });
    for (let i = 0; i < 60; i++) await world.produce(bus, 0, `v${i}-`.padEnd(4_000, '.'));
    expect(member.records).toHaveLength(1);
    const [{ low } = { low: 0 }] = await world.settle(bus.admin.watermarks('t'));
    expect(low).toBeGreaterThan(1);
    member.acknowledgeAll();
    await world.clock.advanceBy(1);
    expect(member.records[1]?.offset).toBe(low);
    expect(member.errors).toMatchObject([{ code: 'BUS_UNAVAILABLE' }]);
    expect(world.telemetry.value('millrace_bus_skipped_records_total', { topic: 't', group: 'g' })).toBe(
      low - 1,
    );
  });

  it('is the last record of each key once it was compacted', async () => {
    const world = new MemoryWorld();
    const bus = world.connect();
    await world.createTopic(bus, 1, { 'cleanup.policy': 'compact', 'delete.retention.ms': '1000' });
    const put = (key: string, value: string | null): Promise<void> =>
      world.settle(
        bus.produce({
          topic: 't',
          partition: 0,
          key: Buffer.from(key),
          value: value === null ? null : Buffer.from(value),
        }),
      );
    for (const [key, value] of [
      ['a', 'a1'],
      ['b', 'b1'],
      ['a', 'a2'],
      ['b', null],
      ['c', 'c1'],
    ] as const) {
      await put(key, value);
    }
    world.broker.compact('t');
    expect(await world.kept(bus)).toEqual(['a2', 'null', 'c1']);
    await world.clock.advanceBy(1_001);
    world.broker.compact('t');
    expect(await world.kept(bus)).toEqual(['a2', 'c1']);
    await put('d', 'd1');
    expect(await world.kept(bus)).toEqual(['a2', 'c1', 'd1']);
    expect(await world.settle(bus.admin.watermarks('t'))).toEqual([{ partition: 0, low: 0, high: 6 }]);
    await put('d', null);
    await world.clock.advanceBy(2_000);
    world.broker.compact('t');
    // The last offset is gone: a reader catches up with nothing there.
    expect(await world.kept(bus)).toEqual(['a2', 'c1']);
  });

  it('keeps a quiet key of a compacted topic though the bytes run out', async () => {
    const world = new MemoryWorld({ topicBytesMax: 50_000 });
    const bus = world.connect();
    await world.createTopic(bus, 1, { 'cleanup.policy': 'compact' });
    const put = (key: string, value: string): Promise<void> =>
      world.settle(
        bus.produce({ topic: 't', partition: 0, key: Buffer.from(key), value: Buffer.from(value) }),
      );
    await put('quiet', 'still here');
    for (let i = 0; i < 200; i++) await put('loud', `${i}`);
    const kept = await world.kept(bus);
    expect(kept[0]).toBe('still here');
    expect(kept[kept.length - 1]).toBe('199');
    expect(kept.length).toBeLessThan(100);
  });

  it('takes no record without a key where it is compacted', async () => {
    const world = new MemoryWorld();
    const bus = world.connect();
    await world.createTopic(bus, 1, { 'cleanup.policy': 'compact' });
    const produced = bus.produce({ topic: 't', partition: 0, key: null, value: Buffer.from('v') });
    await expect(world.settle(produced)).rejects.toMatchObject({ code: 'POISON', retryable: false });
  });

  it.each([
    { partitions: 0, config: {} },
    { partitions: 1.5, config: {} },
    { partitions: 1, config: { 'retention.ms': 'soon' } },
    { partitions: 1, config: { 'max.message.bytes': '-2' } },
  ])('is refused as $partitions partitions with $config', async ({ partitions, config }) => {
    const world = new MemoryWorld();
    const bus = world.connect();
    await expect(world.createTopic(bus, partitions, config)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
    });
  });
});
