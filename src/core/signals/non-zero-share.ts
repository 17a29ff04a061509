import type { RequestView, ValueRun } from './request-view.ts';
import type { Signal } from './signal.ts';

export const nonZeroShare: Signal = {
  version: 1,
  type: 'double',
  unit: '1',
  costBudgetUs: 1,
  docs:
    'Share of all the values that a first layer reads, both sides, that are not 0: Σ non-zeros / Σ values over the ' +
    'floating-point tensors. The candidate side counts with its full size and is estimated from the sample. 0 to 1. ' +
    'NaN where there is no such value.',
  read(view: RequestView) {
    const values = countValues(view.requestRuns) + countValues(view.candidateRuns);
    return (countNonZeros(view.requestRuns) + countNonZeros(view.candidateRuns)) / values;
  },
};

function countValues(runs: readonly ValueRun[]): number {
  let values = 0;
  for (const run of runs) values += run.tensorValues;
  return values;
}

function countNonZeros(runs: readonly ValueRun[]): number {
  let nonZeros = 0;
  for (const run of runs) {
    const read = run.end - run.start;
    if (read > 0) nonZeros += (run.tensorValues * (read - run.zeros)) / read;
  }
  return nonZeros;
}
