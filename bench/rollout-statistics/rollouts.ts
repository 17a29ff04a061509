import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { Metric } from '../../src/core/rollout/metric-evidence.ts';
import { Machine } from './machine.ts';
import { DeclaredExposure, PeekedMannWhitney, type PeekedTest, PeekedZTest } from './peers.ts';
import type { Crowd } from './population.ts';
import { type BaseRates, type Effect, Traffic, WINDOW_MS } from './traffic.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A rollout that is not decided by then is given up. */
const ROLLOUT_MS_MAX = 6 * HOUR_MS;

export const STAGES = [
  { percent: 5, dwellMs: 15 * MINUTE_MS },
  { percent: 10, dwellMs: 10 * MINUTE_MS },
  { percent: 25, dwellMs: 10 * MINUTE_MS },
  { percent: 50, dwellMs: 10 * MINUTE_MS },
];

export interface Scenario {
  readonly name: string;
  readonly effect: Effect;
  readonly rates?: Partial<BaseRates>;
  readonly crowd: Crowd;
  /** What the peers look at: they have one metric each, or they would be wrong even more often. */
  readonly metric: Metric;
}

const USUAL: BaseRates = { errors: 0.001, deadLetters: 0, deadlineMisses: 0.003 };

export interface Outcome {
  readonly end: 'rolled back' | 'live' | 'undecided';
  readonly atMs: number;
  /** Whether it was ever on hold. */
  readonly held: boolean;
  /** Whether it ever called the arms different, in whichever direction. */
  readonly alarmed: boolean;
}

export const PEERS = ['z-test', 'Mann-Whitney'] as const;
export type Method = 'millrace' | (typeof PEERS)[number] | 'declared exposure';

/** One hour in the canary stage: what do looks every 10 s come to? */
export function watchAnHour(
  scenario: Scenario,
  method: Method,
  seed: number,
  withoutHeaviest: boolean,
): Outcome {
  const traffic = trafficOf(scenario, seed, withoutHeaviest);
  const hour = [{ percent: 5, dwellMs: 2 * HOUR_MS }];
  return method === 'millrace'
    ? runMachine(traffic, hour, HOUR_MS)
    : runPeer(traffic, hour, HOUR_MS, (percent) => peerOf(method, percent, scenario.metric));
}

/** Through all four stages, with their dwell times and on each stage's data alone. */
export function rollOut(scenario: Scenario, method: Method, seed: number): Outcome {
  const traffic = trafficOf(scenario, seed, true);
  return method === 'millrace'
    ? runMachine(traffic, STAGES, ROLLOUT_MS_MAX)
    : runPeer(traffic, STAGES, ROLLOUT_MS_MAX, (percent) => peerOf(method, percent, scenario.metric));
}

function trafficOf(
  { name, effect, rates, crowd }: Scenario,
  seed: number,
  withoutHeaviest: boolean,
): Traffic {
  const random = seededRandom(seed).stream(name);
  return new Traffic(random, { rates: { ...USUAL, ...rates }, effect, crowd, withoutHeaviest });
}

function runMachine(traffic: Traffic, stages: typeof STAGES, msMax: number): Outcome {
  const machine = new Machine(stages);
  let atMs = 0;
  for (; machine.percent !== undefined && atMs < msMax; atMs += WINDOW_MS)
    machine.look(traffic.next(machine.percent));
  const { outcome, held } = machine;
  return { end: outcome, atMs, held, alarmed: outcome === 'rolled back' };
}

/** The naive way: significantly worse is a rollback, and everything else passes when its time is over. */
function runPeer(
  traffic: Traffic,
  stages: typeof STAGES,
  msMax: number,
  start: (percent: number) => PeekedTest,
): Outcome {
  let atMs = 0;
  let alarmed = false;
  for (const { percent, dwellMs } of stages) {
    const test = start(percent);
    for (let stageMs = 0; stageMs < dwellMs; stageMs += WINDOW_MS) {
      if (atMs >= msMax) return { end: 'undecided', atMs, held: false, alarmed };
      atMs += WINDOW_MS;
      const finding = test.add(traffic.next(percent));
      alarmed ||= finding !== 'alike';
      if (finding === 'worse') return { end: 'rolled back', atMs, held: false, alarmed };
    }
  }
  return { end: 'live', atMs, held: false, alarmed };
}

function peerOf(method: Exclude<Method, 'millrace'>, percent: number, metric: Metric): PeekedTest {
  switch (method) {
    case 'z-test':
      return new PeekedZTest(metric);
    case 'Mann-Whitney':
      return new PeekedMannWhitney(metric);
    case 'declared exposure':
      return new DeclaredExposure(percent);
    default:
      return method satisfies never;
  }
}
