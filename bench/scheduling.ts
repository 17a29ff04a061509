import type { BenchRow } from './run.ts';
import { CHOOSERS, type ChooserName } from './scheduling/choosers.ts';
import { compare } from './scheduling/compare.ts';
import { GOAL_CASES } from './scheduling/scenarios.ts';

const PEERS = (Object.keys(CHOOSERS) as ChooserName[]).filter((name) => name !== 'score');

/**
 * The tail of ways to choose a worker: 4 routers, 30 workers of speeds 4:2:1, lognormal work, 80 % load, heartbeats each 20 to 500 ms, in virtual
 * time. Latency is from the arrival at the router to the end at the worker. What peers are: `src/simulation/baselines`.
 *
 *   npm run bench -- scheduling --seeds 20
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const targets = {
    'weighted round robin': 0.35,
    'power of two, by status and own dispatches': 0.4,
    'least own unacknowledged per speed': 0.7,
    'Prequal at 0.6': 0.5,
    'omniscient greedy': 1.6,
  };
  return { rows: compare(options, { cases: GOAL_CASES, peers: PEERS, targets, differByStatus: true }) };
}
