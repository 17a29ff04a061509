import { expect, it } from 'vitest';
import type { TunedPipelineOptions } from './tuned-pipeline.ts';
import { runNoise, runRolloutAndUndo, runTakeOver, runTrouble } from './tuning-scenarios.ts';

/** As little traffic as shows anything, so that a run takes seconds. With more, and more seeds: node test/simulation/tuning-sweep.ts. */
const SMALL: Omit<TunedPipelineOptions, 'seed' | 'pools'> = {
  periodMs: 2_000,
  requestsMin: 50,
  requestsPerPeriod: 280,
  requestMs: 1,
};

it.each([
  { seed: 1, pools: 'two', phase: 0 },
  { seed: 2, pools: 'one', phase: 0.5 },
] as const)(
  'a domain that takes twice as long loses a tenth of its requests, and has them back when it heals ($pools pool(s), seed $seed)',
  async ({ seed, pools, phase }) => {
    const run = await runTrouble({ ...SMALL, seed, pools }, { memory: 'hbm', kind: 'kernels', phase });
    expect(run.violations).toEqual([]);
  },
);

it('the whole pipeline waits while a rollout is in canary, and a person takes a step back with one command', async () => {
  expect(await runRolloutAndUndo({ ...SMALL, seed: 3, pools: 'two' })).toEqual([]);
});

it('a controller that dies in the midst of it is replaced by one that goes on', async () => {
  expect(await runTakeOver({ ...SMALL, seed: 4, pools: 'two' })).toEqual([]);
});

it('noise moves nothing', async () => {
  expect(await runNoise({ ...SMALL, seed: 5, pools: 'two' }, 12)).toEqual({ steps: 0, violations: [] });
});
