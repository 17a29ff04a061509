import { type CostModel, parseCostModel, predictCostMs } from './cost-model.ts';

/** What one request of a shape took. */
export interface CostSample {
  readonly candidates: number;
  readonly rows: number;
  readonly ms: number;
}

/** Errors of a cost model as shares of what was measured. */
export interface CostError {
  readonly median: number;
  readonly p95: number;
}

const SINGULAR = 1e-12;

/**
 * Coefficients ≥ 0 by least squares of the relative error: a fit over absolute ones would only see the largest shapes. A term that would cost less
 * than nothing is left out (0), and the rest fitted again.
 *
 * @param features as a cost model has them: `1`, `N`, `T`, `N*T`
 */
export function fitCost(features: readonly string[], samples: readonly CostSample[]): number[] {
  const terms = costModel(
    features,
    features.map(() => 1),
  ).terms;
  const rows = samples.map(({ candidates, rows: length, ms }) =>
    terms.map((term) => (candidates ** term.candidates * length ** term.rows) / ms),
  );
  const used = new Set(features.keys());
  for (;;) {
    const kept = [...used];
    const solved = solve(rows.map((row) => kept.map((column) => row[column] ?? 0)));
    const least = solved.reduce((at, value, n) => (value < (solved[at] ?? 0) ? n : at), 0);
    if ((solved[least] ?? 0) >= 0) return features.map((_, column) => solved[kept.indexOf(column)] ?? 0);
    used.delete(kept[least] ?? 0);
  }
}

/** On samples that it was not fitted to. */
export function costError(
  features: readonly string[],
  coefficients: readonly number[],
  samples: readonly CostSample[],
): CostError {
  const model = costModel(features, coefficients);
  const errors = samples
    .map(({ candidates, rows, ms }) => Math.abs(predictCostMs(model, candidates, rows) - ms) / ms)
    .sort((a, b) => a - b);
  const at = (share: number): number =>
    errors[Math.min(errors.length - 1, Math.floor(share * errors.length))] ?? 0;
  return { median: at(0.5), p95: at(0.95) };
}

function costModel(features: readonly string[], coefficients: readonly number[]): CostModel {
  return parseCostModel({ format: 1, unit: 'ms', features, coefficients });
}

/** Least squares of `rows · x = 1` by the normal equations, columns scaled to length 1; 0 for a column that follows from others. */
function solve(rows: readonly (readonly number[])[]): number[] {
  const count = rows[0]?.length ?? 0;
  const columns = Array.from({ length: count }, (_, n) => rows.map((row) => row[n] ?? 0));
  const lengths = columns.map((column) => Math.sqrt(dot(column, column)) || 1);
  const unit = columns.map((column, n) => column.map((value) => value / (lengths[n] ?? 1)));
  const ones = rows.map(() => 1);
  const system = unit.map((column) => [...unit.map((other) => dot(column, other)), dot(column, ones)]);
  return eliminate(system).map((value, n) => value / (lengths[n] ?? 1));
}

/** Gauss and Jordan, with the largest pivot of a column. */
function eliminate(system: number[][]): number[] {
  const size = system.length;
  const rowOf = new Array<number>(size).fill(-1);
  for (let column = 0, next = 0; column < size; column += 1) {
    const pivot = largestFrom(system, next, column);
    const found = system[pivot];
    if (found === undefined || Math.abs(found[column] ?? 0) < SINGULAR) continue;
    [system[pivot], system[next]] = [system[next] ?? [], found];
    system.forEach((row, n) => {
      if (n !== next) subtract(row, found, (row[column] ?? 0) / (found[column] ?? 1));
    });
    rowOf[column] = next;
    next += 1;
  }
  return rowOf.map((row, column) =>
    row < 0 ? 0 : (system[row]?.[size] ?? 0) / (system[row]?.[column] ?? 1),
  );
}

function largestFrom(system: readonly number[][], start: number, column: number): number {
  let largest = start;
  for (let row = start; row < system.length; row += 1)
    if (Math.abs(system[row]?.[column] ?? 0) > Math.abs(system[largest]?.[column] ?? 0)) largest = row;
  return largest;
}

function subtract(row: number[], from: readonly number[], factor: number): void {
  for (let n = 0; n < row.length; n += 1) row[n] = (row[n] ?? 0) - factor * (from[n] ?? 0);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, n) => sum + value * (b[n] ?? 0), 0);
}
