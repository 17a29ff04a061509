import type { ProductWeights } from '../onnx-file/product-weights.ts';

/** Which rows a value has: one per request of a batch, or one per candidate. */
export type Rows = 'request' | 'candidate';

/** An input of the graph, or the result of a layer. */
export interface RowValue {
  name: string;
  rows: Rows;
  /** Values in a row. */
  width: number;
}

/** result[row] = activation(input[row] · W + b + added[request of row]). */
export interface Layer extends ProductWeights {
  result: RowValue;
  input: RowValue;
  /** A value with a row per request that is added to the rows of its candidates. */
  added: RowValue | undefined;
  activation: 'none' | 'relu';
}

/** What is done to one number. */
export type ScalarStep =
  | { kind: 'sigmoid' | 'negate' | 'exponent' | 'reciprocal' }
  | { kind: 'add'; value: number };

/** An output of the graph, FP32 [candidates]: a column of a layer's result, each number changed by the steps in turn. */
export interface LayerHead {
  name: string;
  of: RowValue;
  column: number;
  steps: readonly ScalarStep[];
}

/** A graph as layers, in an order in which they can run. */
export interface LayerPlan {
  inputs: readonly RowValue[];
  /** INT64 [candidates]: the request of each. */
  requestIndex: string;
  layers: readonly Layer[];
  heads: readonly LayerHead[];
}

/** Products of a plan for each row, in multiplications with their addition. */
export interface LayerWork {
  perRequest: number;
  perCandidate: number;
}

export function workOf({ layers }: LayerPlan): LayerWork {
  const of = (rows: Rows): number =>
    layers
      .filter(({ result }) => result.rows === rows)
      .reduce((sum, { inner, columns }) => sum + inner * columns, 0);
  return { perRequest: of('request'), perCandidate: of('candidate') };
}

/**
 * Above it ONNX Runtime's wider vectors weigh more than what its calls cost: layers in WebAssembly were 1.5 to 4 times as fast below, as fast at
 * about 350 000, and slower beyond (`npm run bench -- rocs-small`, with AVX-512).
 */
const MULTIPLICATIONS_MAX = 200_000;

export function isSmallBatch(work: LayerWork, requests: number, candidates: number): boolean {
  return work.perRequest * requests + work.perCandidate * candidates <= MULTIPLICATIONS_MAX;
}
