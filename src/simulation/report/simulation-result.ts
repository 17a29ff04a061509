import type { Comparison } from './compare.ts';
import type { SimulationReport } from './simulation-report.ts';

/** All that a command simulated. Plain JSON; the same for the same options and seed. */
export interface SimulationResult {
  readonly format: 1;
  readonly simulated: true;
  /** Policy by policy, in the order of their seeds. */
  readonly runs: readonly SimulationReport[];
  /** Of each policy after the first with it; empty where none was asked for. */
  readonly comparisons: readonly Comparison[];
}
