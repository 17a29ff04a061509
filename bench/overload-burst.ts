import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { POOL_POLICIES, type PoolPolicyName } from '../src/simulation/overload/policies.ts';
import { sumSeconds } from '../src/simulation/overload/pool-book.ts';
import { measureAfterBurst } from '../src/simulation/overload/scenarios.ts';
import { positive, row, seedsOf } from './overload/rows.ts';
import type { BenchRow } from './run.ts';

/**
 * Whether a pool comes back after 10 s of twice what it can do, at 0.8 before and after, whose clients send up to three times again what fails or is late. A second's share
 * is that of the requests first sent in it that got an answer in time, whichever attempt did, pooled over seeds.
 *
 * On a worker of one server the test is valid: no control and Gradient2, whose least limit of 20 is twice what fits into the SLA there, stay down.
 *
 * `--seeds`, from `--seed`; `--after` how many seconds are watched.
 */

const USAGE = {
  seeds: { type: 'string', default: '20' },
  seed: { type: 'string', default: '1' },
  after: { type: 'string', default: '15' },
} as const;

const OURS: readonly PoolPolicyName[] = ['strict', 'one-price'];
const OTHERS: readonly PoolPolicyName[] = [
  'no control',
  'Gradient2',
  'Cinnamon',
  'DAGOR',
  'Breakwater',
  'GIE',
  'DCAF',
];
const STAY_DOWN: readonly PoolPolicyName[] = ['no control', 'Gradient2'];
const PLACES = [
  { place: 'worker of 1', servers: 1 },
  { place: 'pool of 4', servers: 4 },
] as const;
const BACK_S = 2;

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const seeds = seedsOf(values.seed, values.seeds);
  const seconds = positive('after', values.after, BACK_S + 1);
  return { rows: PLACES.flatMap(({ place, servers }) => afterBurst(seeds, place, servers, seconds)) };
}

function afterBurst(seeds: readonly number[], place: string, servers: number, seconds: number): BenchRow[] {
  return [...OURS, ...OTHERS].flatMap((name): BenchRow[] => {
    const isOurs = OURS.includes(name);
    const late = sharesAfter(name, seeds, servers, seconds).slice(BACK_S);
    const what = `10 s of 2×, clients retry 3×, ${place}${isOurs ? `, ${name}` : ''}`;
    const peer = isOurs ? undefined : name;
    const least = row(
      `${what}: least answered in a second, from ${BACK_S} s after`,
      Math.min(...late),
      '',
      peer,
    );
    const most = row(
      `${what}: most answered in a second, from ${BACK_S} s after`,
      Math.max(...late),
      '',
      peer,
    );
    if (isOurs) return [{ ...least, target: 0.99, relation: '>=' }];
    return [
      least,
      servers === 1 && STAY_DOWN.includes(name) ? { ...most, target: 0.5, relation: '<=' } : most,
    ];
  });
}

function sharesAfter(
  name: PoolPolicyName,
  seeds: readonly number[],
  servers: number,
  seconds: number,
): number[] {
  const runs = seeds.map((seed) => measureAfterBurst(POOL_POLICIES[name], seed, { servers, seconds }));
  return Array.from({ length: seconds }, (_, second) => {
    const each = runs.flatMap((run) => run.slice(second, second + 1));
    const pooled = sumSeconds(each, 0, each.length);
    return pooled.answered / pooled.sent;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows } = await run(process.argv.slice(2));
  for (const { metric, value, peer } of rows)
    console.log(`${metric}${peer ? ` (${peer})` : ''}: ${value.toPrecision(4)}`);
}
