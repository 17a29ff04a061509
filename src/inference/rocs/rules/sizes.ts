import { intOf, intsOf } from '../../onnx-file/attributes.ts';
import { readConstant } from '../../onnx-file/constant.ts';
import type { Dim } from '../../onnx-file/graph.ts';
import { TensorProto_DataType } from '../../onnx-file/onnx-proto.ts';
import { intAttribute } from '../../onnx-file/write-graph.ts';
import { tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { productOf, quotientOf, ROWS } from '../size.ts';
import { CONSTANT_LEVEL, type SizesValue, type Value } from '../value.ts';
import { inputOf, integersAt, type Rule, type Step, shapeOf, sizesAt } from './step.ts';

/** Exporters compute shapes in the graph. What they compute is known here but for its symbols, and never becomes a node. */

export const shape: Rule = (step) => {
  const x = inputOf(step, 0);
  const sizes = shapeOf(x);
  const start = intOf(step.node, 'start', 0);
  const end = intOf(step.node, 'end', sizes.length);
  return [vector(sizes.slice(start, end))];
};

export const sizeRules: Readonly<Record<string, Rule>> = {
  Add: (step) => [combine(step, (a, b) => sumOf(step, a, b))],
  Sub: (step) => [combine(step, (a, b) => (a === b ? 0 : numbers(step, a, b, (x, y) => x - y)))],
  Mul: (step) => [combine(step, (a, b) => productOf([a, b]))],
  Div: (step) => [
    combine(step, (a, b) => quotientOf(a, b) ?? numbers(step, a, b, (x, y) => Math.trunc(x / y))),
  ],
  Concat: (step) => [vector(step.node.inputs.flatMap((_, n) => sizesAt(step, n)))],
  Gather: pick,
  Slice: cut,
  Unsqueeze: (step) => [vector(sizesAt(step, 0))],
  Squeeze: (step) => [scalar(sizesAt(step, 0)[0] ?? 1)],
  Reshape: (step) => [vector(sizesAt(step, 0))],
  Cast: (step) => [{ kind: 'sizes', sizes: sizesAt(step, 0), isScalar: isScalarAt(step, 0) }],
  Identity: (step) => [{ kind: 'sizes', sizes: sizesAt(step, 0), isScalar: isScalarAt(step, 0) }],
  ReduceProd: (step) => [scalar(productOf(sizesAt(step, 0)))],
};

function sumOf(step: Step, a: Dim, b: Dim): Dim {
  if (a === 0) return b;
  if (b === 0) return a;
  return numbers(step, a, b, (x, y) => x + y);
}

function numbers({ node }: Step, a: Dim, b: Dim, of: (a: number, b: number) => number): number {
  if (typeof a === 'number' && typeof b === 'number') return of(a, b);
  throw refusal(node, `it computes with a size that only a call knows (${a}, ${b})`);
}

function combine(step: Step, of: (a: Dim, b: Dim) => Dim): SizesValue {
  const [a, b] = [sizesAt(step, 0), sizesAt(step, 1)];
  const sizes = Array.from({ length: Math.max(a.length, b.length) }, (_, n) =>
    of(a[a.length === 1 ? 0 : n] ?? 1, b[b.length === 1 ? 0 : n] ?? 1),
  );
  return { kind: 'sizes', sizes, isScalar: isScalarAt(step, 0) && isScalarAt(step, 1) };
}

function pick(step: Step): readonly Value[] {
  const sizes = sizesAt(step, 0);
  const at = integersAt(step, 1).map((index) => sizes[index < 0 ? index + sizes.length : index] ?? 1);
  return [isScalarAt(step, 1) ? scalar(at[0] ?? 1) : vector(at)];
}

function cut(step: Step): readonly Value[] {
  const [start = 0] = integersAt(step, 1);
  const [end = 0] = integersAt(step, 2);
  return [vector(sizesAt(step, 0).slice(start, end > 2 ** 31 ? undefined : end))];
}

function isScalarAt(step: Step, position: number): boolean {
  const input = inputOf(step, position);
  return input.kind === 'sizes' ? input.isScalar : shapeOf(input).length === 0;
}

function vector(sizes: readonly Dim[]): SizesValue {
  return { kind: 'sizes', sizes, isScalar: false };
}

function scalar(size: Dim): SizesValue {
  return { kind: 'sizes', sizes: [size], isScalar: true };
}

/** The same number everywhere: of the shape's size but for the rows, which it does not need to be added to anything that has them. */
export const constantOfShape: Rule = (step) => {
  const { node, into } = step;
  const sizes = sizesAt(step, 0);
  const rest = sizes.slice(1);
  if (
    rest.some((size) => typeof size !== 'number') ||
    (sizes[0] !== ROWS && typeof sizes[0] !== 'number' && sizes.length > 0)
  ) {
    throw refusal(node, `it fills a size that only a call knows ([${sizes.join(', ')}])`);
  }
  const value = node.attributes.find(({ name }) => name === 'value')?.t;
  const constant = value === undefined ? undefined : readConstant(value);
  const type = constant?.type ?? TensorProto_DataType.FLOAT;
  const hasRows = sizes[0] === ROWS;
  const level = hasRows ? 0 : CONSTANT_LEVEL;
  const known = into.integers(rest.map(Number));
  const target = hasRows
    ? rest.length === 0
      ? into.rowsOf(0)
      : into.emit('Concat', [into.rowsOf(0), known], 0, [intAttribute('axis', 0)])
    : into.integers(sizes.map(Number));
  return [tensorOf(level, into.emit('ConstantOfShape', [target], level, node.attributes), type, sizes)];
};

/** 0, 1, … up to a size: the positions of a sequence. */
export const range: Rule = (step) => {
  const { node, into } = step;
  const [start, limit, delta] = [0, 1, 2].map((n) => sizesAt(step, n)[0] ?? 0);
  if (start !== 0 || delta !== 1 || limit === undefined)
    throw refusal(node, 'it counts otherwise than 0, 1, 2, …');
  const scalarOf = (value: number) => into.emit('Squeeze', [into.integers([value])], CONSTANT_LEVEL);
  const end = typeof limit === 'number' ? scalarOf(limit) : into.symbol(limit);
  if (end === undefined) throw refusal(node, `it counts up to what no input has (${limit})`);
  const name = into.emit('Range', [scalarOf(0), end, scalarOf(1)], CONSTANT_LEVEL);
  return [tensorOf(CONSTANT_LEVEL, name, TensorProto_DataType.INT64, [limit])];
};

/** Whether a node computes sizes only: its inputs are all sizes, or constants of whole numbers beside them. */
export function isOfSizes(step: Step): boolean {
  const inputs = step.inputs.filter((input) => input !== undefined);
  if (inputs.length === 0 || intsOf(step.node, 'value') !== undefined) return false;
  return (
    inputs.some((input) => input.kind === 'sizes') &&
    inputs.every((input) => input.kind === 'sizes' || (input.kind === 'constant' && input.shape.length <= 1))
  );
}
