import type { Signal } from './signal.ts';

export const sparsityRatio: Signal = {
  version: 1,
  type: 'double',
  unit: '1',
  costBudgetUs: 1,
  docs:
    'Zeros among the values of the floating-point tensors of the request side, all read: zeros / values. 0 to 1. ' +
    'NaN where the request side has no such value.',
  read(view) {
    let zeros = 0;
    let values = 0;
    for (const run of view.requestRuns) {
      zeros += run.zeros;
      values += run.tensorValues;
    }
    return values === 0 ? Number.NaN : zeros / values;
  },
};
