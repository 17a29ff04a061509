import { predictCostMs } from './cost-model.ts';
import type { Signal } from './signal.ts';

export const predictedCostMs: Signal = {
  version: 1,
  type: 'double',
  unit: 'ms',
  costBudgetUs: 1,
  docs:
    'What the request costs alone, all N candidates, on the machine that the cost model was fitted on: ' +
    'Σ coefficient · feature, features being products of N and T (rows of the longest sequence). 0 or more. ' +
    'NaN where the model, or the version that the request asks for, has no cost model.',
  read: (view) =>
    view.costModel === undefined
      ? Number.NaN
      : predictCostMs(view.costModel, view.candidateCount, view.sequenceLength ?? 0),
};
