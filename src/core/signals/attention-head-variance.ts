import { isSequence } from '../request/family.ts';
import type { RequestView, ValueRun } from './request-view.ts';
import type { Signal } from './signal.ts';

const HEADS = 4;

export const attentionHeadVariance: Signal = {
  version: 1,
  type: 'double',
  unit: '1',
  costBudgetUs: 10,
  docs:
    'How unevenly the energy of the longest floating-point sequence is spread over attention heads. Its rows are cut into 4 ' +
    'heads of equal width; E_h = Σ x² over head h, E the sum of all; the signal is the population variance of 4·E_h/E. ' +
    '0 (evenly spread) to 3 (all in one head). NaN where there is no such sequence, it is empty or all 0, or its row length ' +
    'is not a multiple of 4.',
  read(view) {
    const run = longestSequenceRun(view);
    if (run === undefined || run.sumSquares === 0 || run.rowValues % HEADS !== 0) return Number.NaN;
    let variance = 0;
    for (let head = 0; head < HEADS; head++) {
      const share = (HEADS * headEnergy(view.values, run, head)) / run.sumSquares;
      variance += (share - 1) ** 2 / HEADS;
    }
    return variance;
  },
};

function longestSequenceRun(view: RequestView): ValueRun | undefined {
  let longest: ValueRun | undefined;
  let rowsMax = 0;
  for (const run of view.requestRuns) {
    const rows = run.tensorValues / run.rowValues;
    if (!isSequence(run.input) || !(rows > rowsMax)) continue;
    longest = run;
    rowsMax = rows;
  }
  return longest;
}

/** Σ x² over one head of all rows. */
function headEnergy(values: Float64Array, run: ValueRun, head: number): number {
  const width = run.rowValues / HEADS;
  let energy = 0;
  for (let row = run.start + head * width; row < run.end; row += run.rowValues)
    for (let i = row; i < row + width; i++) energy += (values[i] ?? 0) ** 2;
  return energy;
}
