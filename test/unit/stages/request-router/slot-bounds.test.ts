import { describe, expect, it } from 'vitest';
import { makePoolStatus, type PoolStatus } from '../../../../src/contracts/records.ts';
import { SlotBounds } from '../../../../src/stages/request-router/slot-bounds.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { topics } from '../records.fixture.ts';

const status = (worker: string, slots: number[], pool = 'cpu'): PoolStatus =>
  makePoolStatus({
    pool,
    worker,
    slots,
    capacityClass: 'DEDICATED',
    incarnation: 'life',
    accelerator: 'cpu',
    backend: 'onnx-cpu',
  });

async function start(partitions = 2) {
  const world = new MemoryWorld();
  const bus = world.connect();
  const create = (count: number): Promise<unknown> =>
    world.settle(
      bus.admin.createTopics([
        { name: topics.dispatch('cpu'), partitions: count, replication: 1, config: {} },
      ]),
    );
  await create(partitions);
  const passed: [string, readonly number[]][] = [];
  const bounds = new SlotBounds({ bus, topics, clock: world.clock }, ({ worker, slots }) =>
    passed.push([worker, slots]),
  );
  return { world, bus, create, bounds, passed };
}

describe('SlotBounds', () => {
  it('passes a heartbeat on once the slots are known, the newest of each worker', async () => {
    const { world, bounds, passed } = await start();
    bounds.take(status('a', [0]));
    bounds.take(status('a', [0, 1]));
    bounds.take(status('b', []));
    expect(passed).toEqual([]);
    await world.clock.advanceBy(1);
    expect(passed).toEqual([
      ['a', [0, 1]],
      ['b', []],
    ]);
    bounds.take(status('a', [1]));
    expect(passed.at(-1)).toEqual(['a', [1]]);
  });

  it('knows how many slots the pools have that were heard of', async () => {
    const { world, bounds } = await start(3);
    bounds.take(status('a', [0]));
    bounds.take(status('b', [0], 'none'));
    expect([...bounds.known()]).toEqual([]);
    await world.clock.advanceBy(1);
    expect([...bounds.known()]).toEqual([['cpu', 3]]);
  });

  it.each([
    ['beyond the topic', [0, 999], [0]],
    ['beyond it alone', [2], []],
  ])('leaves out slots %s', async (_name, named, expected) => {
    const { world, bounds, passed } = await start();
    bounds.take(status('evil', named));
    await world.clock.advanceBy(1);
    bounds.take(status('evil', named));
    expect(passed).toEqual([
      ['evil', expected],
      ['evil', expected],
    ]);
  });

  it('learns that a pool has grown, and that its topic was made anew with less', async () => {
    const { world, bus, create, bounds, passed } = await start();
    bounds.take(status('a', [0]));
    await world.clock.advanceBy(2_000);
    await world.settle(bus.admin.growTopic(topics.dispatch('cpu'), 3));
    bounds.take(status('a', [2]));
    await world.clock.advanceBy(2_000);
    bounds.take(status('a', [2]));
    expect(passed.at(-1)).toEqual(['a', [2]]);
    await world.settle(bus.admin.deleteTopics([topics.dispatch('cpu')]));
    await create(1);
    for (let n = 0; n < 60; n += 1) {
      bounds.take(status('a', [0, 2]));
      await world.clock.advanceBy(200);
    }
    expect(passed.at(-1)).toEqual(['a', [0]]);
  });

  it('passes nothing of a pool that has no topic, or of a worker that left before it was known', async () => {
    const { world, bounds, passed } = await start();
    bounds.take(status('a', [0], 'made-up'));
    bounds.take(status('b', [0]));
    bounds.gone('b');
    await world.clock.advanceBy(5_000);
    expect(passed).toEqual([]);
  });
});
