import { type CostModel, parseCostModel, predictCostMs } from './cost-model.ts';
import { notNegativeSolution } from './normal-equations.ts';

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
  const column = (n: number): number[] => rows.map((row) => row[n] ?? 0);
  const columns = terms.map((_, n) => column(n));
  return notNegativeSolution({
    products: columns.map((one) => columns.map((other) => dot(one, other))),
    sums: columns.map((one) => one.reduce((sum, value) => sum + value, 0)),
  });
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

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, n) => sum + value * (b[n] ?? 0), 0);
}
