import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { POOL_POLICIES, type PoolPolicyName } from '../src/simulation/overload/policies.ts';
import { type Drift, measureDrift } from '../src/simulation/overload/scenarios.ts';
import { positive, row, seedsOf } from './overload/rows.ts';
import type { BenchRow } from './run.ts';

/**
 * Whether what a controller lets in creeps away under 1.2 times the capacity for hours: the greatest change of a window's mean from that of the first of eight, the worst of
 * the seeds. Ours have no limit of their own but what they take the servers to do; the value that they answer stands beside it.
 *
 * `--hours`, `--seeds`, from `--seed`. Controllers without a limit (no control, GIE, DCAF) are left out.
 */

const USAGE = {
  seeds: { type: 'string', default: '3' },
  seed: { type: 'string', default: '1' },
  hours: { type: 'string', default: '4' },
} as const;

const OURS: readonly PoolPolicyName[] = ['strict', 'one-price'];
const OTHERS: readonly PoolPolicyName[] = ['Cinnamon', 'DAGOR', 'Breakwater', 'Gradient2'];
const SERVERS = 2;
const WINDOWS = 8;

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const seeds = seedsOf(values.seed, values.seeds);
  const hours = positive('hours', values.hours);
  return { rows: [...OURS, ...OTHERS].flatMap((name) => sustained(name, seeds, hours)) };
}

function sustained(name: PoolPolicyName, seeds: readonly number[], hours: number): BenchRow[] {
  const drifts = seeds.map((seed) =>
    measureDrift(POOL_POLICIES[name], seed, { servers: SERVERS, hours, windows: WINDOWS }),
  );
  const most = (pick: (drift: Drift) => number): number => 100 * Math.max(...drifts.map(pick));
  const limit = most((drift) => drift.limit);
  const what = `1.2× for ${hours} h, pool of ${SERVERS}`;
  if (!OURS.includes(name)) return [row(`${what}: drift of the limit`, limit, '%', name)];
  const value = most((drift) => drift.value);
  return [
    { ...row(`${what}, ${name}: drift of the limit`, limit, '%'), target: 5, relation: '<=' },
    { ...row(`${what}, ${name}: drift of the value answered`, value, '%'), target: 5, relation: '<=' },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows } = await run(process.argv.slice(2));
  for (const { metric, value, unit, peer } of rows)
    console.log(`${metric}${peer ? ` (${peer})` : ''}: ${value.toPrecision(4)} ${unit}`);
}
