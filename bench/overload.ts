import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { millracePolicy } from '../src/simulation/overload/millrace-policy.ts';
import { POOL_POLICIES, type PoolPolicyName } from '../src/simulation/overload/policies.ts';
import {
  boundsOf,
  type Goodput,
  type GoodputOptions,
  measureGoodput,
} from '../src/simulation/overload/scenarios.ts';
import { intervalOf } from './overload/interval.ts';
import { interval, positive, seedsOf } from './overload/rows.ts';
import type { BenchRow } from './run.ts';

/**
 * A pool of four servers (service times of 10 ms on the mean, an SLA of 100 ms) and a worker of one, asked for more than they can do, in virtual time: what the
 * overload rules answer, beside the controllers of others. Values are shares of a hindsight bound, which knows everything beforehand and has no deadlines, so that
 * none can reach it. Controllers of others are told tenths of density as priorities, and run requests in full, as they know no extras (DCAF does).
 *
 * `--seeds` per figure, from `--seed`; `--seconds` of twice the capacity; `--side-seconds` of what the figures depend on (other loads, values further apart, a
 * capacity that was believed too low), which are left out where it is 0.
 */

const USAGE = {
  seeds: { type: 'string', default: '20' },
  seed: { type: 'string', default: '1' },
  seconds: { type: 'string', default: '60' },
  'side-seconds': { type: 'string', default: '0' },
} as const;

const OURS = ['strict', 'one-price'] as const;
/** What the best of is taken of. */
const RIVALS = ['Cinnamon', 'DAGOR', 'Breakwater', 'Gradient2', 'GIE'] as const;
const OTHERS = [...RIVALS, 'DCAF', 'no control'] as const;
const PLACES = [
  { place: 'pool of 4', servers: 4 },
  { place: 'worker of 1', servers: 1 },
] as const;

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const seeds = seedsOf(values.seed, values.seeds);
  const seconds = positive('seconds', values.seconds);
  const sides = positive('side-seconds', values['side-seconds'], 0);
  return {
    rows: [
      ...PLACES.flatMap(({ place, servers }) => goodput(seeds, place, { servers, seconds })),
      ...(sides > 0 ? sensitivity(seeds, sides) : []),
    ],
  };
}

function goodput(seeds: readonly number[], place: string, options: GoodputOptions): BenchRow[] {
  const bounds = seeds.map((seed) => boundsOf(seed, options));
  const of = (name: PoolPolicyName): Goodput[] =>
    seeds.map((seed, index) => measureGoodput(POOL_POLICIES[name], seed, options, bounds[index]));
  const what = `2× for ${options.seconds} s, ${place}`;
  const [strict, onePrice] = [of('strict'), of('one-price')];
  const others = OTHERS.map((name) => ({ name, runs: of(name) }));
  const mean = (runs: readonly Goodput[]): number => intervalOf(runs.map(({ value }) => value)).mean;
  const best = others
    .filter(({ name }) => RIVALS.some((rival) => rival === name))
    .reduce((a, b) => (mean(b.runs) > mean(a.runs) ? b : a));
  const ratios = onePrice.map(({ value }, seed) => value / (best.runs[seed]?.value ?? Number.NaN));
  return [
    ...figures(`${what}, strict`, strict, { useful: 0.99, value: 0.92, answered: 0.88 }),
    ...figures(`${what}, one-price`, onePrice, { useful: 0.99, value: 0.98 }),
    ...interval(`${what}, one-price: value over that of ${best.name}, the best other`, '×', ratios, 1.05),
    ...others.flatMap(({ name, runs }) => figures(what, runs, {}, name)),
  ];
}

/** The parts of a goodput, a row each. `least` has the targets. */
function figures(what: string, runs: readonly Goodput[], least: Partial<Goodput>, peer?: string): BenchRow[] {
  const part = (name: keyof Goodput, label: string): BenchRow[] =>
    interval(
      `${what}: ${label}`,
      '',
      runs.map((each) => each[name]),
      least[name],
      peer,
    );
  return [
    ...part('useful', 'useful server time of capacity'),
    ...part('value', 'value of the hindsight bound'),
    ...(peer === undefined ? part('strictValue', 'value of the bound where base work comes first') : []),
    ...part('answered', 'requests answered'),
  ];
}

/** What the figures depend on: how far values are apart, how far off the believed capacity is, and the load. */
function sensitivity(seeds: readonly number[], seconds: number): BenchRow[] {
  const pool = { servers: 4, seconds };
  const of = (label: string, options: GoodputOptions, believed = 1): BenchRow[] => {
    const bounds = seeds.map((seed) => boundsOf(seed, options));
    return OURS.flatMap((order) => {
      const policy = millracePolicy(order, believed);
      const runs = seeds.map((seed, index) => measureGoodput(policy, seed, options, bounds[index]));
      return figures(`${label} for ${seconds} s, ${order}`, runs, {});
    });
  };
  return [
    ...of('1.2×', { ...pool, load: 1.2 }),
    ...of('4×', { ...pool, load: 4 }),
    ...of('2×, values further apart (σ 1)', { ...pool, valueSigma: 1 }),
    ...of('2×, capacity believed 30 % low', pool, 0.7),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows } = await run(process.argv.slice(2));
  for (const { metric, value, unit, peer } of rows)
    console.log(`${metric}${peer ? ` (${peer})` : ''}: ${value.toPrecision(4)} ${unit}`);
}
