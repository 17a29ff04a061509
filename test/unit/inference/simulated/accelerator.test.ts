import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import {
  type ModelRepository,
  openRepository,
} from '../../../../src/inference/repository/open-repository.ts';
import { createSimulatedAccelerator } from '../../../../src/inference/simulated/accelerator.ts';
import { type ServiceProfile, serviceProfile } from '../../../../src/inference/simulated/profiles.ts';
import type { SimulatedModel } from '../../../../src/inference/simulated/simulated-model.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { scoresOf } from '../../../conformance/accelerator.fixture.ts';
import { toyFiles, toyItem, toyRequest, writeVersion } from '../toy-model.ts';

let root: string;
let repository: ModelRepository;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-simulated-'));
  await writeVersion(root, toyFiles());
  repository = await openRepository(root);
});
afterAll(() => rm(root, { recursive: true, force: true }));

const steady: ServiceProfile = { ...serviceProfile('gpu-a100'), jitterSigma: 0 };

async function start(profile: ServiceProfile, seed = 1, slowdown?: (memory: string) => number) {
  const clock = virtualClock();
  const accelerator = createSimulatedAccelerator(
    { repository, clock, random: seededRandom(seed), ...(slowdown === undefined ? {} : { slowdown }) },
    profile,
  );
  const model = (await accelerator.load('toy', '1')) as SimulatedModel;
  /** Runs batches at the same time; when each ended. */
  const runAll = async (
    runs: readonly [items: ReturnType<typeof toyItem>[], kernel: string, memory?: string][],
  ) => {
    const ends: number[] = [];
    const batches = Promise.all(
      runs.map(async ([items, kernel, memory], i) => {
        const batch = await model.run(items, kernel, memory);
        ends[i] = clock.monotonicMs();
        return batch;
      }),
    );
    let done = false;
    void batches.finally(() => {
      done = true;
    });
    expect(await clock.runUntil(() => done, 60_000)).toBe(true);
    return { batches: await batches, ends };
  };
  return { accelerator, model, clock, runAll };
}

const items = [toyItem(toyRequest(1, 10, 2)), toyItem(toyRequest(2, 20, 0))];
const { launchMs, requestMs, candidateMs } = steady;
const denseMs = launchMs + 2 * requestMs + 30 * candidateMs;

describe('a simulated device', () => {
  test('takes the time that its profile says', async () => {
    const { runAll } = await start(steady);
    const { batches, ends } = await runAll([[items, 'dense']]);
    expect(batches[0]?.computeMs).toBeCloseTo(denseMs);
    expect(ends[0]).toBeCloseTo(denseMs);
  });

  test('takes as long where scores are not made from bytes, and gives the same to all', async () => {
    const clock = virtualClock();
    const deps = { repository, clock, random: seededRandom(1), standIns: 'alike' } as const;
    const model = await createSimulatedAccelerator(deps, steady).load('toy', '1');
    const running = model.run(items, 'dense');
    await clock.advanceBy(denseMs);
    const batch = await running;
    expect(batch.computeMs).toBeCloseTo(denseMs);
    const scores = batch.items.flatMap((item) => [...(scoresOf(item).heads[0]?.values ?? [])]);
    expect(scores).toEqual(Array(30).fill(0.5));
  });

  test('can be slower than its profile in one memory domain, and is not expected to be', async () => {
    const { runAll, model } = await start(steady, 1, (memory) => (memory === 'hbm' ? 3 : 1));
    const { batches } = await runAll([
      [items, 'dense', 'hbm'],
      [items, 'dense', 'l2'],
    ]);
    expect(batches[0]?.computeMs).toBeCloseTo(3 * denseMs);
    expect(batches[1]?.computeMs).toBeCloseTo(0.82 * denseMs);
    expect(model.predictMs(2, 30)).toBeCloseTo(denseMs);
  });

  test('is faster in a faster memory', async () => {
    const { runAll } = await start(steady);
    const { batches } = await runAll([[items, 'dense', 'l2']]);
    expect(batches[0]?.computeMs).toBeCloseTo(denseMs * 0.82);
  });

  test('is faster with the sparse kernel where the request has many zeros', async () => {
    const { runAll } = await start(steady);
    const zeros = toyItem({
      ...toyRequest(1, 10, 2),
      user: [0, 0, 0],
      history: [
        [0, -0],
        [0, 0],
      ],
    });
    const dense = toyItem({
      ...toyRequest(1, 10, 2),
      user: [1, 1, 1],
      history: [
        [1, 1],
        [1, 1],
      ],
    });
    const { batches } = await runAll([
      [[zeros], 'sparse'],
      [[dense], 'sparse'],
      [[zeros], 'dense'],
    ]);
    const [sparse = 0, full = 0, plain = 0] = batches.map(({ computeMs }) => computeMs);
    expect(sparse / plain).toBeCloseTo(0.7);
    expect(full / plain).toBeCloseTo(1.7);
  });

  test('runs one batch after another', async () => {
    const { runAll } = await start(steady);
    const { ends } = await runAll([
      [items, 'dense'],
      [items, 'dense'],
    ]);
    expect(ends[0]).toBeCloseTo(denseMs);
    expect(ends[1]).toBeCloseTo(2 * denseMs);
  });

  test('draws the same times from the same seed, and others from another', async () => {
    const timesOf = async (seed: number) => {
      const { runAll } = await start(serviceProfile('gpu-a100'), seed);
      const { batches } = await runAll(
        Array.from({ length: 5 }, () => [items, 'dense'] as const).map(([all, kernel]) => [all, kernel]),
      );
      return batches.map(({ computeMs }) => computeMs);
    };
    const times = await timesOf(1);
    expect(new Set(times).size).toBe(5);
    expect(await timesOf(1)).toEqual(times);
    expect(await timesOf(2)).not.toEqual(times);
  });

  test('spends no time where there is nothing to score', async () => {
    const { model, clock } = await start(steady);
    const batch = await model.run([{ ...toyItem(toyRequest(1, 2, 1)), scoreLimit: 0 }], 'dense');
    expect(batch.computeMs).toBe(0);
    expect(clock.monotonicMs()).toBe(0);
  });

  test('says that it is simulated, and what it has', async () => {
    const { accelerator } = await start(serviceProfile('fpga'));
    expect(accelerator.capabilities).toMatchObject({
      backend: 'simulated',
      simulated: true,
      kernels: ['dense', 'attention'],
      memories: ['host'],
    });
  });

  test.each([
    ['quantum', undefined],
    ['dense', 'tape'],
    ['toString', undefined],
  ])('refuses %s on %s', async (kernel, memory) => {
    const { model } = await start(steady);
    await expect(model.run(items, kernel, memory)).rejects.toMatchObject({ code: 'MODEL_FAILED' });
  });

  test('predicts the mean', async () => {
    const { model } = await start(steady);
    expect(model.predictMs(2, 30)).toBeCloseTo(denseMs);
  });
});

describe('stand-in scores', () => {
  test('depend on the candidate alone', async () => {
    const { runAll } = await start(steady);
    const one = toyRequest(1, 6, 2);
    const other = { ...toyRequest(2, 0, 0), items: one.items.toReversed() };
    const { batches } = await runAll([[[toyItem(one), toyItem(other)], 'dense']]);
    const [a, b] = (batches[0]?.items ?? []).map(scoresOf);
    expect([...(b?.scores ?? [])]).toEqual([...(a?.scores ?? [])].reverse());
    const click = [...(a?.heads[0]?.values ?? [])];
    expect(new Set(click).size).toBe(6);
    expect(click.every((value) => value > 0 && value < 1)).toBe(true);
    expect([...(a?.heads[1]?.values ?? [])]).not.toEqual(click);
  });

  test('are spread over (0, 1)', async () => {
    const { runAll } = await start(steady);
    const many = Array.from({ length: 20 }, (_, i) =>
      toyItem({ ...toyRequest(i, 0, 0), items: Array.from({ length: 50 }, (__, k) => [i, k, i * k]) }),
    );
    const { batches } = await runAll([[many, 'dense']]);
    const clicks = (batches[0]?.items ?? []).flatMap((item) => [...(scoresOf(item).heads[0]?.values ?? [])]);
    const tenths = Array.from(
      { length: 10 },
      (_, tenth) => clicks.filter((value) => Math.floor(value * 10) === tenth).length,
    );
    expect(clicks).toHaveLength(1000);
    for (const count of tenths) expect(count).toBeGreaterThan(60);
  });
});
