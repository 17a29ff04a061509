import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { ALIKE, EXTREME, MIXED } from './rollout-statistics/population.ts';
import {
  type Method,
  type Outcome,
  PEERS,
  rollOut,
  type Scenario,
  watchAnHour,
} from './rollout-statistics/rollouts.ts';
import type { BenchRow } from './run.ts';

/**
 * How often the statistics of rollouts are wrong, and how soon they are right, on generated windows of 1 000 requests a second with a look
 * every 10 s; beside them, tests for one look that are peeked at after every window. `--rollouts` per figure, `--seed`.
 */

const USAGE = {
  rollouts: { type: 'string', default: '2000' },
  seed: { type: 'string', default: '1' },
} as const;
const METHODS: readonly Method[] = ['millrace', ...PEERS];

const EQUAL: Scenario = { name: 'equal', effect: {}, crowd: MIXED, metric: 'over p95' };
const WORSE: readonly (Scenario & { label: string })[] = [
  {
    name: 'errors',
    label: 'errors × 1.5',
    effect: { errors: 1.5 },
    rates: { errors: 0.002 },
    crowd: MIXED,
    metric: 'errors',
  },
  {
    name: 'misses',
    label: 'deadline misses × 1.5',
    effect: { deadlineMisses: 1.5 },
    crowd: MIXED,
    metric: 'deadline misses',
  },
  { name: 'p99', label: 'over p99 × 1.5', effect: { over: [1, 1, 1.5] }, crowd: MIXED, metric: 'over p99' },
  {
    name: 'everything',
    label: 'everything × 1.5',
    effect: { errors: 1.5, deadlineMisses: 1.5, over: [1.5, 1.5, 1.5] },
    crowd: MIXED,
    metric: 'over p95',
  },
];
const TAIL_5: Scenario = { name: 'tail 5', effect: { over: [1, 1, 5] }, crowd: MIXED, metric: 'over p99' };
const TAIL_2: Scenario = { name: 'tail 2', effect: { over: [1, 1, 2] }, crowd: MIXED, metric: 'over p99' };
const ZERO_BASELINE: Scenario = {
  name: 'zero baseline',
  effect: { addedErrors: 0.002 },
  rates: { errors: 0 },
  crowd: MIXED,
  metric: 'errors',
};
/** 0.024 % of the requests, as one key in twenty fails five times as often. */
const RARE = { rates: { errors: 0.0002 }, crowd: MIXED, metric: 'errors' } as const;

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const bench = new Bench(positive('rollouts', values.rollouts), Number(values.seed));
  return {
    rows: [
      ...bench.falseAlarms(),
      ...bench.equalRollouts(EQUAL, 'no difference, four stages'),
      ...WORSE.flatMap((scenario) => bench.reachesLive(scenario, scenario.label, 1)),
      ...bench.reachesLive(
        { ...RARE, name: 'rare 1.5', effect: { errors: 1.5 } },
        'rare errors (0.024 %) × 1.5',
        1,
      ),
      ...bench.reachesLive(
        { ...RARE, name: 'rarer 1.5', rates: { errors: 0.00005 }, effect: { errors: 1.5 } },
        'rarest errors (0.006 %) × 1.5',
        undefined,
      ),
      ...bench.equalRollouts({ ...RARE, name: 'rare equal', effect: {} }, 'no difference, rare errors'),
      ...bench.reachesLive(
        { ...RARE, name: 'rare 2', effect: { errors: 2 } },
        'rare errors (0.024 %) × 2',
        1,
      ),
      ...bench.found(TAIL_5, 'tail × 5, p50 and p95 as before', 60),
      ...bench.found(TAIL_2, 'tail × 2, p50 and p95 as before', 300),
      ...bench.found(ZERO_BASELINE, 'errors 0.2 % against none', undefined),
      ...bench.reachesLive(ZERO_BASELINE, 'errors 0.2 % against none', 1),
    ],
  };
}

class Bench {
  readonly #rollouts: number;
  readonly #seed: number;

  constructor(rollouts: number, seed: number) {
    this.#rollouts = rollouts;
    this.#seed = seed;
  }

  falseAlarms(): BenchRow[] {
    const all: readonly Method[] = [...METHODS, 'declared exposure'];
    return [
      ...all.flatMap((method) => this.#falseAlarms(EQUAL, method, true)),
      ...all.flatMap((method) => this.#falseAlarms(EQUAL, method, false)),
      ...METHODS.flatMap((method) => this.#falseAlarms({ ...EQUAL, crowd: ALIKE }, method, true)),
      ...this.#falseAlarms({ ...EQUAL, crowd: EXTREME }, 'millrace', true),
    ];
  }

  #falseAlarms(scenario: Scenario, method: Method, withoutHeaviest: boolean): BenchRow[] {
    const outcomes = this.#each((seed) => watchAnHour(scenario, method, seed, withoutHeaviest));
    const what = `no difference, 1 h, ${scenario.crowd.name}, ${withoutHeaviest ? 'the 50 heaviest left out' : 'with the heaviest'}`;
    const alarms = row(
      `${what}: false alarm`,
      share(outcomes, ({ alarmed }) => alarmed),
      '%',
      method,
    );
    if (method !== 'millrace') return [alarms];
    const held = row(
      `${what}: held`,
      share(outcomes, (outcome) => outcome.held),
      '%',
      method,
    );
    return withoutHeaviest && scenario.crowd !== EXTREME ? [target(alarms, 1), held] : [alarms, held];
  }

  equalRollouts(scenario: Scenario, metric: string): BenchRow[] {
    return METHODS.flatMap((method) => {
      const outcomes = this.#each((seed) => rollOut(scenario, method, seed));
      const live = outcomes.filter(({ end }) => end === 'live');
      return [
        row(
          `${metric}: reaches live`,
          share(outcomes, ({ end }) => end === 'live'),
          '%',
          method,
        ),
        row(
          `${metric}: rolled back`,
          share(outcomes, ({ end }) => end === 'rolled back'),
          '%',
          method,
        ),
        row(`${metric}: median time to live`, median(live.map(({ atMs }) => atMs)) / 60_000, 'min', method),
      ];
    });
  }

  reachesLive(scenario: Scenario, label: string, percentMax: number | undefined): BenchRow[] {
    return METHODS.map((method) => {
      const outcomes = this.#each((seed) => rollOut(scenario, method, seed));
      const live = row(
        `${label}: reaches live`,
        share(outcomes, ({ end }) => end === 'live'),
        '%',
        method,
      );
      return method === 'millrace' && percentMax !== undefined ? target(live, percentMax) : live;
    });
  }

  found(scenario: Scenario, label: string, secondsMax: number | undefined): BenchRow[] {
    return METHODS.map((method) => {
      const outcomes = this.#each((seed) => watchAnHour(scenario, method, seed, true));
      const seconds = outcomes.map(({ end, atMs }) => (end === 'rolled back' ? atMs / 1_000 : 3_600));
      const time = row(`${label}: median time to roll back`, median(seconds), 's', method);
      return method === 'millrace' && secondsMax !== undefined ? target(time, secondsMax) : time;
    });
  }

  #each(rollout: (seed: number) => Outcome): Outcome[] {
    const seeds = seededRandom(this.#seed).stream('rollouts');
    return Array.from({ length: this.#rollouts }, () => rollout(seeds.below(2 ** 32)));
  }
}

const PEER_NAMES = {
  'z-test': 'peeked two-sided z-test',
  'Mann-Whitney': 'peeked Mann-Whitney',
  'declared exposure': 'the same test, by the declared share',
} as const satisfies Record<Exclude<Method, 'millrace'>, string>;

function row(metric: string, value: number, unit: string, method: Method): BenchRow {
  return method === 'millrace' ? { metric, value, unit } : { metric, value, unit, peer: PEER_NAMES[method] };
}

function target(of: BenchRow, max: number): BenchRow {
  return { ...of, target: max, relation: '<=' };
}

function share(outcomes: readonly Outcome[], is: (outcome: Outcome) => boolean): number {
  return (100 * outcomes.filter(is).length) / outcomes.length;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new RangeError(`--${name} is a number from 1 on, not ${text}`);
  return value;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows } = await run(process.argv.slice(2));
  for (const { metric, value, unit, peer } of rows)
    console.log(`${metric}${peer ? ` (${peer})` : ''}: ${value} ${unit}`);
}
