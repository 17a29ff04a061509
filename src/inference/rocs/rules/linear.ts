import { floatOf, intOf } from '../../onnx-file/attributes.ts';
import { float32, sliceConstant } from '../../onnx-file/constant.ts';
import type { Dim, OnnxConstant } from '../../onnx-file/graph.ts';
import { refusal } from '../refusal.ts';
import type { Level, Part, TensorValue, Value } from '../value.ts';
import { asItIs, constantAt, floatConstant, inputOf, type Rule, type Step, tensorAt } from './step.ts';

/** More stretches of columns than this are no mask but chance zeros: they are computed together, at the latest level. */
const RUNS_MAX = 8;

/** Columns [start, end) of a layer's output, and the latest level that reaches them. */
interface Run {
  start: number;
  end: number;
  level: Level;
}

/**
 * x·W + b where x has parts of several levels: W splits exactly into W_R·x_R + W_C·x_C, and a column of it that no candidate reaches (its weights
 * are zero, as a Generalized Layer Mask makes them) stays the request's. The request's share becomes the bias of the candidate's product.
 */
export interface Linear {
  x: TensorValue;
  /** FP32 [inputs, outputs]. */
  weights: OnnxConstant;
  /** FP32, its last axis the outputs. */
  bias: OnnxConstant | undefined;
  /** Which axis is summed over: the last one (x·W), or the last but one (Wᵀ·x, a linear compression of rows of features). */
  sums: 'features' | 'stack';
}

export const gemm: Rule = (step) => {
  const { node } = step;
  if (intOf(node, 'transA', 0) !== 0)
    throw refusal(node, 'it transposes its rows, so that one candidate would reach another');
  const x = tensorAt(step, 0);
  const weights = weightsOf(step, inputOf(step, 1), intOf(node, 'transB', 0) !== 0);
  const bias = step.inputs[2];
  const outputs = weights?.dims[1];
  if (weights === undefined || outputs === undefined)
    throw refusal(node, 'its weights follow from the inputs: rows would meet rows');
  const shape = [x.shape[0] ?? 1, outputs];
  const isPlain = floatOf(node, 'alpha', 1) === 1 && floatOf(node, 'beta', 1) === 1;
  const biasConstant = floatConstant(step, bias) === undefined ? undefined : constantAt(step, bias);
  const isSplit =
    isPlain && x.parts.length > 1 && (bias === undefined || biasConstant?.dims.at(-1) === outputs);
  return [
    isSplit
      ? lowerLinear(step, { x, weights, bias: biasConstant, sums: 'features' }, shape)
      : asItIs(step, shape, x.type),
  ];
};

/** FP32 [inputs, outputs], whichever way the node has them. */
export function weightsOf(step: Step, value: Value, isTransposed: boolean): OnnxConstant | undefined {
  const constant = floatConstant(step, value);
  if (constant === undefined || constant.dims.length !== 2) return undefined;
  const [rows = 0, columns = 0] = constant.dims;
  if (!isTransposed) return constantAt(step, value);
  return transposed(constant.values, rows, columns);
}

/** [rows, columns] → [columns, rows] */
function transposed(values: Float32Array, rows: number, columns: number): OnnxConstant {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      turned[column * rows + row] = values[row * columns + column] ?? 0;
    }
  }
  return float32([columns, rows], turned);
}

/** @param shape of the output */
export function lowerLinear(step: Step, linear: Linear, shape: readonly Dim[]): TensorValue {
  const { x, weights } = linear;
  const axis = shape.length - (linear.sums === 'features' ? 1 : 2);
  if (x.parts.length > 1 && x.axis !== axis) return eachPart(step, linear, shape);
  const runs = runsOf(x, weights);
  const parts = runs.map((run) => lowerRun(step, linear, run));
  return { kind: 'tensor', type: x.type, shape, axis, parts };
}

/** Parts that divide another axis than the one that is summed over: each by itself. */
function eachPart(step: Step, { x, weights, bias, sums }: Linear, shape: readonly Dim[]): TensorValue {
  const { into } = step;
  const b = bias === undefined ? undefined : into.constant(bias);
  const parts = x.parts.map((part) => product(step, part, weights, b, part.size, sums, false));
  return { kind: 'tensor', type: x.type, shape, axis: x.axis, parts };
}

function runsOf(x: TensorValue, weights: OnnxConstant): Run[] {
  const levels = columnLevels(x, weights);
  const runs: Run[] = [];
  levels.forEach((level, column) => {
    const last = runs.at(-1);
    if (last?.level === level) last.end = column + 1;
    else runs.push({ start: column, end: column + 1, level });
  });
  if (runs.length <= RUNS_MAX) return runs;
  return [{ start: 0, end: levels.length, level: Math.max(...levels) }];
}

/** By output column: the latest level with a weight that is not zero; the first part's where there is none. */
function columnLevels(x: TensorValue, weights: OnnxConstant): Level[] {
  const [, columns = 0] = weights.dims;
  const values = valuesOf(weights);
  const earliest = Math.min(...x.parts.map(({ level }) => level));
  const levels = new Array<Level>(columns).fill(earliest);
  let row = 0;
  for (const { level, size } of x.parts) {
    const end = row + Number(size);
    for (; row < end; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        if (values[row * columns + column] !== 0 && level > (levels[column] ?? level)) levels[column] = level;
      }
    }
  }
  return levels;
}

/** One stretch of columns: each level's share becomes the bias of the next one's product. */
function lowerRun(step: Step, { x, weights, bias, sums }: Linear, { start, end, level }: Run): Part {
  const { into } = step;
  const columns = sliceConstant(weights, 1, start, end);
  let sum: Part | undefined;
  for (const { part, row } of byLevel(x)) {
    if (part.level > level) continue;
    const block = sliceConstant(columns, 0, row, row + Number(part.size));
    if (block.bytes.every((byte) => byte === 0) && !(sum === undefined && isLast(x, part, level))) continue;
    const before = sum === undefined ? undefined : into.partAt(sum, part.level).name;
    const first =
      bias === undefined ? undefined : into.constant(sliceConstant(bias, bias.dims.length - 1, start, end));
    sum = product(step, part, block, before ?? first, end - start, sums, x.shape.length === 2);
  }
  if (sum === undefined) throw refusal(step.node, 'none of its weights is other than zero');
  return sum;
}

/** Where all weights are zero the last part of the level still gives its zeros. */
function isLast(x: TensorValue, part: Part, level: Level): boolean {
  return (
    byLevel(x)
      .filter((each) => each.part.level <= level)
      .at(-1)?.part === part
  );
}

function byLevel(x: TensorValue): { part: Part; row: number }[] {
  let at = 0;
  const parts = x.parts.map((part) => {
    const row = at;
    at += Number(part.size);
    return { part, row };
  });
  return parts.sort((a, b) => a.part.level - b.part.level);
}

/** @param isMatrix where one operator can multiply and add */
function product(
  { into }: Step,
  { level, name }: Part,
  block: OnnxConstant,
  bias: string | undefined,
  size: Dim,
  sums: Linear['sums'],
  isMatrix: boolean,
): Part {
  if (isMatrix) {
    const weights = into.constant(block);
    const inputs = bias === undefined ? [name, weights] : [name, weights, bias];
    return { level, name: into.emit('Gemm', inputs, level), size, layout: 'rows' };
  }
  const multiplied = into.emit(
    'MatMul',
    sums === 'features' ? [name, into.constant(block)] : [into.constant(turn(block)), name],
    level,
  );
  const sum = bias === undefined ? multiplied : into.emit('Add', [multiplied, bias], level);
  return { level, name: sum, size, layout: 'rows' };
}

function turn(block: OnnxConstant): OnnxConstant {
  const [rows = 0, columns = 0] = block.dims;
  return transposed(valuesOf(block), rows, columns);
}

function valuesOf({ bytes }: OnnxConstant): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}
