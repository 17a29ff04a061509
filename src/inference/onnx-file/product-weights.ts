import { floatOf, intOf } from './attributes.ts';
import { floatsOf } from './constant.ts';
import type { OnnxConstant, OnnxGraph, OnnxNode } from './graph.ts';

/** x · W + b, with W and b given. */
export interface ProductWeights {
  /** K: values in a row of x. */
  inner: number;
  /** H: values in a row of the result. */
  columns: number;
  /** FP32 [K, H]. */
  weights: Float32Array;
  /** FP32 [H]; none where `undefined`. */
  bias?: Float32Array | undefined;
}

/** The second factor of a MatMul or a Gemm as [K, H], with `alpha` in it; `undefined` where it is no matrix of FP32. */
export function matrixOf(
  node: OnnxNode,
  { type, dims, bytes }: OnnxConstant,
): Omit<ProductWeights, 'bias'> | undefined {
  const values = floatsOf({ type, dims, bytes });
  const [rows, columns] = dims;
  if (values === undefined || rows === undefined || columns === undefined || dims.length > 2)
    return undefined;
  if (values.length === 0) return undefined;
  const alpha = floatOf(node, 'alpha', 1);
  if (alpha !== 1)
    values.forEach((value, n) => {
      values[n] = value * alpha;
    });
  if (node.op === 'MatMul' || intOf(node, 'transB', 0) === 0)
    return { inner: rows, columns, weights: values };
  return { inner: columns, columns: rows, weights: transposed(values, rows, columns) };
}

function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1)
      turned[column * rows + row] = values[row * columns + column] ?? 0;
  return turned;
}

/** What Gemm adds alike to every row, with `beta` in it. */
export function biasOf(
  node: OnnxNode,
  constants: OnnxGraph['constants'],
  columns: number,
): Float32Array | undefined {
  const values = sameInEveryRow(constants.get(node.inputs[2] ?? ''), columns);
  const beta = floatOf(node, 'beta', 1);
  return values?.map((value) => value * beta);
}

/** The name of what Gemm adds that is not alike for all rows. */
export function addendOf(
  node: OnnxNode,
  constants: OnnxGraph['constants'],
  columns: number,
): string | undefined {
  const name = node.op === 'Gemm' ? (node.inputs[2] ?? '') : '';
  if (name === '' || sameInEveryRow(constants.get(name), columns) !== undefined) return undefined;
  return name;
}

/** FP32 [columns] of a constant that adds the same to every row of so many; `undefined` where it does not. */
export function sameInEveryRow(
  constant: OnnxConstant | undefined,
  columns: number,
): Float32Array | undefined {
  const values = constant === undefined ? undefined : floatsOf(constant);
  if (values === undefined || constant === undefined) return undefined;
  if (constant.dims.slice(0, -1).some((size) => size !== 1)) return undefined;
  if (values.length === columns) return values;
  return values.length === 1 ? new Float32Array(columns).fill(values[0] ?? 0) : undefined;
}
