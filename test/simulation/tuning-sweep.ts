import { DEFAULT_TUNING } from '../../src/core/tuning/tuning-terms.ts';
import type { TunedPipelineOptions } from './tuned-pipeline.ts';
import { runNoise, runRolloutAndUndo, runTakeOver, runTrouble, type TuningRun } from './tuning-scenarios.ts';

/**
 * `node test/simulation/tuning-sweep.ts [first seed] [seeds] [part of a scenario's name]`: the tuning of the whole pipeline with the traffic that
 * production's settings take, each scenario with each seed. What a seed gives depends on nothing else.
 */

/** A period is short, its requests are as many as in three minutes at 7 a second. */
const AS_SHIPPED = {
  periodMs: 8_000,
  requestsMin: DEFAULT_TUNING.requestsMin,
  requestsPerPeriod: 1_300,
  requestMs: 1,
};
const NOISE_PERIODS = 15;

export interface SweptRun {
  readonly violations: readonly string[];
  readonly trouble?: TuningRun;
  readonly steps?: number;
}

export interface Swept {
  readonly name: string;
  run(seed: number): Promise<SweptRun>;
}

const optionsOf = (seed: number, more: Partial<TunedPipelineOptions> = {}): TunedPipelineOptions => ({
  ...AS_SHIPPED,
  seed,
  pools: seed % 2 === 0 ? 'one' : 'two',
  ...more,
});

export const SWEPT: readonly Swept[] = [
  ...(['hbm', 'l2'] as const).map((memory) => ({
    name: `${memory} twice as slow`,
    async run(seed: number) {
      const phase = (seed % 4) / 4;
      const trouble = await runTrouble(optionsOf(seed), { memory, phase, kind: 'kernels' });
      return { trouble, violations: trouble.violations };
    },
  })),
  {
    // its queue alone shows it, and batches that grow; two pools, or both domains would wait
    name: 'a pool with half of its workers',
    async run(seed) {
      const options = optionsOf(seed, { pools: 'two', requestMs: 9, periodMs: 10_000 });
      const trouble = await runTrouble(options, { memory: 'hbm', phase: 0, kind: 'queue' });
      return { trouble, violations: trouble.violations };
    },
  },
  {
    name: 'a rollout, and a person',
    run: async (seed) => ({ violations: await runRolloutAndUndo(optionsOf(seed)) }),
  },
  {
    name: 'another controller',
    run: async (seed) => ({ violations: await runTakeOver(optionsOf(seed)) }),
  },
  { name: 'noise', run: (seed) => runNoise(optionsOf(seed), NOISE_PERIODS) },
];

/** Runs a scenario with some seeds, and prints what went wrong, and what it measured. @returns failed runs */
export async function sweep({ name, run }: Swept, first: number, count: number): Promise<number> {
  const runs: SweptRun[] = [];
  let failures = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const done = await run(seed).catch((error: unknown) => ({ violations: [String(error)] }));
    runs.push(done);
    if (done.violations.length === 0) continue;
    failures += 1;
    console.log(`FAILED "${name}", seed ${seed}: ${done.violations.join('; ')}`);
  }
  const of = (pick: (run: TuningRun) => number): string =>
    spread(runs.flatMap(({ trouble }) => (trouble === undefined ? [] : [pick(trouble)])));
  const steps = runs.reduce((sum, run) => sum + (run.steps ?? 0), 0);
  const measured = runs.some(({ trouble }) => trouble !== undefined)
    ? `step after ${of((run) => run.stepAfter)} whole periods, moved ${of((run) => 100 * run.moved)} %, back after ${of((run) => run.backAfter)} periods`
    : `${steps} steps`;
  console.log(`${name}: ${count} runs, ${failures} failed; ${measured}`);
  return failures;
}

/** Least, median, 95th of 100, most. */
function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number): string =>
    (sorted[Math.round(q * (sorted.length - 1))] ?? Number.NaN).toFixed(1).replace('.0', '');
  return [0, 0.5, 0.95, 1].map(at).join(' / ');
}

if (import.meta.main) {
  const [first = '1', count = '20', part = ''] = process.argv.slice(2);
  let failures = 0;
  for (const swept of SWEPT.filter(({ name }) => name.includes(part)))
    failures += await sweep(swept, Number(first), Number(count));
  process.exitCode = failures === 0 ? 0 : 1;
}
