import type { Distribution } from '../../src/simulation/engine/draws.ts';
import { NO_STRAGGLERS, type RoutingScenario } from '../../src/simulation/routing/scenario.ts';

export interface Case {
  readonly name: string;
  readonly changed: Partial<RoutingScenario>;
}

function hops(from: number, to: number): { dispatchMs: Distribution; acknowledgementMs: Distribution } {
  const hop = { kind: 'uniform', from, to } as const;
  return { dispatchMs: hop, acknowledgementMs: hop };
}

export const BASE: RoutingScenario = {
  routers: 4,
  speeds: [4, 2, 1].flatMap((speed) => Array.from({ length: 10 }, () => speed)),
  pools: 1,
  load: 0.8,
  arrivals: { kind: 'poisson' },
  work: { kind: 'lognormal', mean: 10, sigma: 1 },
  predictionSigma: 0,
  stragglers: NO_STRAGGLERS,
  ...hops(1, 3),
  statusPeriodMs: 200,
  changes: [],
  warmUpMs: 1_000,
  endMs: 6_000,
};

export const GOAL_CASES: readonly Case[] = [20, 200, 500].map((statusPeriodMs) => ({
  name: `status each ${statusPeriodMs} ms`,
  changed: { statusPeriodMs },
}));

const REPORTED: readonly (readonly [string, Partial<RoutingScenario>])[] = [
  ['hops of 3 to 8 ms', hops(3, 8)],
  ['predictions off by 30 %', { predictionSigma: 0.3 }],
  ['work of sigma 0.5', { work: { kind: 'lognormal', mean: 10, sigma: 0.5 } }],
  ['1 % stragglers of 10 times the work', { stragglers: { share: 0.01, factor: 10 } }],
  [
    'a fast worker turns 8 times slower, silently',
    { changes: [{ atMs: 1_000, kind: 'slow', worker: 0, factor: 1 / 8 }] },
  ],
  ['a router dies', { changes: [{ atMs: 1_000, kind: 'router-dies', router: 3 }] }],
  ['uneven routers, 4:2:1:1', { routerShares: [4, 2, 1, 1] }],
  ['bursts of 2 times the rate', { arrivals: { kind: 'bursts', factor: 2, onMs: 50, offMs: 200 } }],
  ...[1, 2, 8, 16].map((routers) => [`${routers} routers`, { routers }] as const),
  ...[0.6, 0.7, 0.9, 0.95].map((load) => [`${load * 100} % load`, { load }] as const),
];

export const REPORTED_CASES: readonly Case[] = REPORTED.map(([name, changed]) => ({
  name,
  changed: { endMs: 3_500, ...changed },
}));
