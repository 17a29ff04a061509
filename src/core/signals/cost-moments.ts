import { notNegativeSolution } from './normal-equations.ts';

/** Of a batch, over its requests: how many, Σ N, Σ T and Σ N·T (N candidates, T rows of the longest sequence). */
export interface BatchShape {
  readonly requests: number;
  readonly candidates: number;
  readonly rows: number;
  readonly candidateRows: number;
}

/** Those of a cost model, in the order of a batch's sums. */
export const MOMENT_FEATURES = ['1', 'N', 'T', 'N*T'] as const;
const SIZE = MOMENT_FEATURES.length;

/** A clock may not tell two moments apart. */
const MS_MIN = 1e-6;

/** The pairs of features, each once. */
const PAIRS = MOMENT_FEATURES.flatMap((_, i) =>
  MOMENT_FEATURES.slice(i).map((__, more) => [i, i + more] as const),
);

/**
 * What a cost model is fitted from, as sums over batches that are added up over workers and time. With the sums f of a batch, and ms its measured time:
 * `batches`, Σ fᵢ/ms and Σ fᵢ·fⱼ/ms², the normal equations of least relative error (Σ cᵢ·fᵢ = ms).
 */
export type CostMoments = ReadonlyMap<string, number>;

export const MOMENT_NAMES: readonly string[] = [
  'batches',
  ...MOMENT_FEATURES,
  ...PAIRS.map(([i, j]) => nameOf(i, j)),
];

function nameOf(i: number, j: number): string {
  return `${MOMENT_FEATURES[i]} ${MOMENT_FEATURES[j]}`;
}

/** Sums up what batches took, cheaply: a few additions each. */
export class CostMomentSum {
  readonly #sums = new Float64Array(MOMENT_NAMES.length);

  /** Batches that took no time that a clock tells say nothing, and are left out: one of them would outweigh all others. */
  add({ requests, candidates, rows, candidateRows }: BatchShape, ms: number): void {
    if (!(ms >= MS_MIN) || !Number.isFinite(ms)) return;
    const weighted = [requests / ms, candidates / ms, rows / ms, candidateRows / ms];
    const sums = this.#sums;
    sums[0] = (sums[0] ?? 0) + 1;
    for (let i = 0; i < SIZE; i += 1) sums[1 + i] = (sums[1 + i] ?? 0) + (weighted[i] ?? 0);
    for (let n = 0; n < PAIRS.length; n += 1) {
      const [i, j] = PAIRS[n] ?? [0, 0];
      sums[1 + SIZE + n] = (sums[1 + SIZE + n] ?? 0) + (weighted[i] ?? 0) * (weighted[j] ?? 0);
    }
  }

  /** What was added since the last time. */
  take(): CostMoments {
    const taken = new Map(MOMENT_NAMES.map((name, n) => [name, this.#sums[n] ?? 0]));
    this.#sums.fill(0);
    return taken;
  }
}

/** Coefficients ≥ 0, in the order of `MOMENT_FEATURES`. */
export function fitMoments(moments: CostMoments): number[] {
  return notNegativeSolution(equationsOf(moments));
}

/** Of the square of the mean: requests whose candidates spread by less than a tenth of their number tell no base from a slope. */
const SPREAD_MIN = 0.01;

/**
 * Whether the batches differ in candidates for each request, so that what a request takes and what a candidate takes can be told apart. Where they do
 * not, many fits are as good, and one of them says that candidates cost nothing.
 */
export function tellsCandidatesApart(moments: CostMoments): boolean {
  const { products } = equationsOf(moments);
  const [[ones = 0, both = 0] = [], [, candidates = 0] = []] = products;
  return ones * candidates > (1 + SPREAD_MIN) * both * both;
}

/** Below 0 by no more than rounding: shares of what is added up. */
const ROUNDING = 1e-9;

/** Root of the mean square of the relative error, over the batches. NaN where there was none, and where the moments can be of no batches. */
export function momentsError(moments: CostMoments, coefficients: readonly number[]): number {
  const { products, sums } = equationsOf(moments);
  const batches = moments.get('batches') ?? 0;
  const dot = (values: readonly number[]): number =>
    values.reduce((sum, value, n) => sum + value * (coefficients[n] ?? 0), 0);
  const squares = batches - 2 * dot(sums) + dot(products.map(dot));
  return squares < -ROUNDING * batches ? Number.NaN : Math.sqrt(Math.max(0, squares) / batches);
}

function equationsOf(moments: CostMoments): { products: number[][]; sums: number[] } {
  const at = (name: string): number => moments.get(name) ?? 0;
  return {
    products: MOMENT_FEATURES.map((_, i) =>
      MOMENT_FEATURES.map((__, j) => at(nameOf(Math.min(i, j), Math.max(i, j)))),
    ),
    sums: MOMENT_FEATURES.map(at),
  };
}
