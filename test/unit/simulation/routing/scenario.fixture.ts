import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { CreateChooser } from '../../../../src/simulation/routing/chooser.ts';
import { type RoutingReport, runRouting } from '../../../../src/simulation/routing/run-routing.ts';
import { NO_STRAGGLERS, type RoutingScenario } from '../../../../src/simulation/routing/scenario.ts';

const AT_ONCE = { kind: 'fixed', value: 0 } as const;

/** Workers of speed 1 and requests of 1 ms that arrive singly, without any hop: the queues of the textbooks. */
export function textbook(
  workers: number,
  load: number,
  more: Partial<RoutingScenario> = {},
): RoutingScenario {
  return {
    routers: 1,
    speeds: Array.from({ length: workers }, () => 1),
    pools: 1,
    load,
    arrivals: { kind: 'poisson' },
    work: { kind: 'exponential', mean: 1 },
    predictionSigma: 0,
    stragglers: NO_STRAGGLERS,
    dispatchMs: AT_ONCE,
    acknowledgementMs: AT_ONCE,
    statusPeriodMs: 100,
    changes: [],
    warmUpMs: 500,
    endMs: 4_000,
    ...more,
  };
}

/** Two routers of three workers with hops and heartbeats, small enough to be looked at. */
export function small(more: Partial<RoutingScenario> = {}): RoutingScenario {
  return textbook(3, 0.6, {
    routers: 2,
    speeds: [2, 1, 1],
    dispatchMs: { kind: 'uniform', from: 1, to: 3 },
    acknowledgementMs: { kind: 'uniform', from: 1, to: 3 },
    statusPeriodMs: 20,
    warmUpMs: 0,
    endMs: 1_000,
    ...more,
  });
}

export function run(scenario: RoutingScenario, create: CreateChooser, seed = 1): RoutingReport {
  return runRouting(scenario, create, seededRandom(seed));
}

/** One figure of each of 20 seeds, as `within95` wants them. */
export function overSeeds(
  scenario: RoutingScenario,
  create: CreateChooser,
  figureOf: (report: RoutingReport) => number,
): number[] {
  return Array.from({ length: 20 }, (_, seed) => figureOf(run(scenario, create, seed)));
}
