import type { BenchRow } from './run.ts';
import { compare } from './scheduling/compare.ts';
import { REPORTED_CASES } from './scheduling/scenarios.ts';

/**
 * The benchmark `scheduling` where it is harder or otherwise: longer hops, wrong predictions, stragglers, a worker that turns slow in silence, other
 * numbers of routers, other loads.
 *
 *   npm run bench -- scheduling-cases --seeds 20
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const peers = ['weighted round robin', 'Prequal at 0.6', 'omniscient greedy'] as const;
  const targets = { 'Prequal at 0.6': 0.7 };
  return { rows: compare(options, { cases: REPORTED_CASES, peers, targets, differByStatus: false }) };
}
