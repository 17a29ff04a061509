import { isSequence } from '../request/family.ts';
import type { Signal } from './signal.ts';

export const embeddingNorm: Signal = {
  version: 1,
  type: 'double',
  unit: '1',
  costBudgetUs: 1,
  docs:
    'L2 norm of the request itself: √Σ x² over its floating-point tensors without a free dimension (a user embedding; ' +
    'sequences are left out, since their norm would say how long they are). 0 or more. NaN where there is no such tensor.',
  read(view) {
    let sumSquares = 0;
    let found = false;
    for (const run of view.requestRuns) {
      if (isSequence(run.input)) continue;
      sumSquares += run.sumSquares;
      found = true;
    }
    return found ? Math.sqrt(sumSquares) : Number.NaN;
  },
};
