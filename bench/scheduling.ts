import { parseArgs } from 'node:util';
import type { BenchRow } from './run.ts';
import { CHOOSERS, type ChooserName, HEARS_STATUS } from './scheduling/choosers.ts';
import { type Interval, interval95 } from './scheduling/interval.ts';
import { runSeeds, type SeedFigures } from './scheduling/run-seeds.ts';
import { BASE, type Case, GOAL_CASES, REPORTED_CASES } from './scheduling/scenarios.ts';

/** The tail of the router's score against each baseline's. */
const TARGETS: Partial<Record<ChooserName, number>> = {
  'weighted round robin': 0.35,
  'power of two, by status and own dispatches': 0.4,
  'least own unacknowledged per speed': 0.7,
  'Prequal at 0.6': 0.5,
  'omniscient greedy': 1.6,
};
const REPORTED: readonly ChooserName[] = ['weighted round robin', 'Prequal at 0.6', 'omniscient greedy'];
const PREQUAL_TARGET = 0.7;

/**
 * The tail of ways to choose a worker: 4 routers, 30 workers of speeds 4:2:1, lognormal work, 80 % load, in virtual time. Latency is from the arrival at
 * the router to the end at the worker. Every way meets the same requests; ratios are of the same seeds, with 95 % intervals over the seeds.
 *
 *   npm run bench -- scheduling --seeds 20
 *   npm run bench -- scheduling --quick     (3 seeds of 2 s: to look at, not to quote)
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({
    args: [...options],
    options: {
      seeds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      quick: { type: 'boolean', default: false },
    },
  });
  const seeds = values.quick ? 3 : Number(values.seeds);
  const first = Number(values.seed);
  const rows: BenchRow[] = [];
  const known: Known = new Map();
  for (const each of [...GOAL_CASES, ...REPORTED_CASES])
    rows.push(...rowsOf(each, seeds, first, values.quick, known));
  return { rows };
}

/** Of the goal's cases, which differ by heartbeats alone, what nobody who listens to none would do otherwise. */
type Known = Map<ChooserName, readonly SeedFigures[]>;

function rowsOf(each: Case, seeds: number, first: number, isQuick: boolean, known: Known): BenchRow[] {
  const scenario = { ...BASE, ...each.changed, ...(isQuick ? { warmUpMs: 1_000, endMs: 3_000 } : {}) };
  const names = each.isGoal ? (Object.keys(CHOOSERS) as ChooserName[]) : REPORTED;
  const startedMs = performance.now();
  const own = runSeeds(scenario, CHOOSERS.score, seeds, first);
  const rows = [row(each, 'p99', interval95(own.map(({ p99Ms }) => p99Ms)), 'ms')];
  rows.push(row(each, 'mean', interval95(own.map(({ meanMs }) => meanMs)), 'ms'));
  for (const name of names) {
    if (name === 'score') continue;
    const before = each.isGoal ? known.get(name) : undefined;
    const peer = before ?? runSeeds(scenario, CHOOSERS[name], seeds, first);
    if (each.isGoal && !HEARS_STATUS.has(name)) known.set(name, peer);
    rows.push({ ...row(each, 'p99', interval95(peer.map(({ p99Ms }) => p99Ms)), 'ms'), peer: name });
    const ratios = own.map(({ p99Ms }, seed) => p99Ms / (peer[seed]?.p99Ms ?? Number.NaN));
    const ratio = row(each, `p99 against ${name}`, interval95(ratios), '×');
    const target = each.isGoal ? TARGETS[name] : name.startsWith('Prequal') ? PREQUAL_TARGET : undefined;
    rows.push(target === undefined ? ratio : { ...ratio, target, relation: '<=' });
  }
  console.error(`${each.name}: ${Math.round((performance.now() - startedMs) / 1_000)} s`);
  return rows;
}

function row(each: Case, what: string, { mean, half }: Interval, unit: string): BenchRow {
  return { metric: `${each.name}: ${what}, ± ${half.toPrecision(2)}`, value: mean, unit };
}
