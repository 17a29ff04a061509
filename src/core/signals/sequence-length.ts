import type { Signal } from './signal.ts';

export const sequenceLength: Signal = {
  version: 1,
  type: 'int',
  unit: 'rows',
  costBudgetUs: 1,
  docs:
    'Rows of the longest sequence of the request side, as its length input says where one was sent; 0 where the sequence ' +
    'was left out. NaN where the family has no sequence input.',
  read: (view) => view.sequenceLength ?? Number.NaN,
};
