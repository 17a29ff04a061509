import { expect, it, vi } from 'vitest';
import { runNoise, runRolloutAndUndo, runTakeOver, runTrouble } from './tuning-scenarios.ts';
import { FEW_REQUESTS } from './tuning-sweep.ts';

// A run is seconds of work, on a machine that is busy with other tests many more.
vi.setConfig({ testTimeout: 180_000 });
// With more traffic, and more seeds: node test/simulation/tuning-sweep.ts

it.each([
  { seed: 1, pools: 'two', phase: 0 },
  { seed: 2, pools: 'one', phase: 0.5 },
] as const)(
  'a domain that takes twice as long loses a tenth of its requests, and has them back when it heals ($pools pool(s), seed $seed)',
  async ({ seed, pools, phase }) => {
    const run = await runTrouble({ ...FEW_REQUESTS, seed, pools }, { memory: 'hbm', kind: 'kernels', phase });
    expect(run.violations).toEqual([]);
  },
);

it('the whole pipeline waits while a rollout is in canary, and a person takes a step back with one command', async () => {
  expect(await runRolloutAndUndo({ ...FEW_REQUESTS, seed: 3, pools: 'two' })).toEqual([]);
});

it('a controller that dies in the midst of it is replaced by one that goes on', async () => {
  expect(await runTakeOver({ ...FEW_REQUESTS, seed: 4, pools: 'two' })).toEqual([]);
});

it('noise moves nothing', async () => {
  expect(await runNoise({ ...FEW_REQUESTS, seed: 5, pools: 'two' }, 8)).toEqual({
    steps: 0,
    violations: [],
  });
});
