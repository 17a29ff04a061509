import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { CreateChooser } from '../../src/simulation/routing/chooser.ts';
import { runRouting } from '../../src/simulation/routing/run-routing.ts';
import type { RoutingScenario } from '../../src/simulation/routing/scenario.ts';

export interface SeedFigures {
  readonly meanMs: number;
  readonly p99Ms: number;
}

/** One run for each seed from `first` on. */
export function runSeeds(
  scenario: RoutingScenario,
  create: CreateChooser,
  seeds: number,
  first: number,
): SeedFigures[] {
  return Array.from({ length: seeds }, (_, seed) => {
    const { latency } = runRouting(scenario, create, seededRandom(first + seed));
    return { meanMs: latency.meanMs, p99Ms: latency.quantileMs(0.99) };
  });
}
