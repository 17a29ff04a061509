import type { ValueRun } from './request-view.ts';
import type { Signal } from './signal.ts';

export const biasMax: Signal = {
  version: 1,
  type: 'double',
  unit: '1',
  costBudgetUs: 1,
  docs:
    'Largest offset of a tensor from 0: max over the floating-point tensors of both sides of |Σ x / n|, n being the values ' +
    'that were read (the sample, on the candidate side). 0 or more. NaN where there is no such value.',
  read: (view) => largestMean(view.candidateRuns, largestMean(view.requestRuns, Number.NaN)),
};

function largestMean(runs: readonly ValueRun[], atLeast: number): number {
  let largest = atLeast;
  for (const run of runs) {
    const mean = Math.abs(run.sum / (run.end - run.start));
    if (!(mean <= largest) && run.end > run.start) largest = mean;
  }
  return largest;
}
