import type { Signal } from './signal.ts';

export const candidateCount: Signal = {
  version: 1,
  type: 'int',
  unit: 'candidates',
  costBudgetUs: 1,
  docs: 'N, the candidates that the request sent, baseline and extra. Never NaN.',
  read: (view) => view.candidateCount,
};
