import { intOf } from '../../onnx-file/attributes.ts';
import { integersOf, readConstant } from '../../onnx-file/constant.ts';
import type { Dim } from '../../onnx-file/graph.ts';
import { TensorProto_DataType } from '../../onnx-file/onnx-proto.ts';
import { intAttribute } from '../../onnx-file/write-graph.ts';
import { tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { differenceOf, productOf, quotientOf, ROWS, sumOf } from '../size.ts';
import { CONSTANT_LEVEL, type SizesValue, type Value } from '../value.ts';
import { expand } from './layout.ts';
import { constantAt, inputOf, integersAt, type Rule, type Step, shapeOf, sizesAt } from './step.ts';

/** 64 numbers: more are a table. */
const FEW_BYTES = 512;

/** Exporters compute shapes in the graph. What they compute is known here but for its symbols, and never becomes a node. */

export const shape: Rule = (step) => {
  const x = inputOf(step, 0);
  const sizes = shapeOf(x);
  const start = intOf(step.node, 'start', 0);
  const end = intOf(step.node, 'end', sizes.length);
  return [vector(sizes.slice(start, end))];
};

export const sizeRules: Readonly<Record<string, Rule>> = {
  Add: (step) => [combine(step, (a, b) => sumOf([a, b]))],
  Sub: (step) => [combine(step, differenceOf)],
  Mul: (step) => [combine(step, (a, b) => productOf([a, b]))],
  Div: (step) => [
    combine(step, (a, b) => quotientOf(a, b) ?? numbers(step, a, b, (x, y) => Math.trunc(x / y))),
  ],
  Mod: (step) => [combine(step, (a, b) => numbers(step, a, b, (x, y) => x % y))],
  Concat: (step) => [vector(step.node.inputs.flatMap((_, n) => sizesAt(step, n)))],
  Gather: pick,
  Slice: cut,
  Unsqueeze: (step) => [vector(sizesAt(step, 0))],
  Squeeze: (step) => [scalar(sizesAt(step, 0)[0] ?? 1)],
  Reshape: (step) => [vector(sizesAt(step, 0))],
  Cast: (step) => [{ kind: 'sizes', sizes: sizesAt(step, 0), isScalar: isScalarAt(step, 0) }],
  Identity: (step) => [{ kind: 'sizes', sizes: sizesAt(step, 0), isScalar: isScalarAt(step, 0) }],
  Expand: repeated,
  ConstantOfShape: filled,
  Equal: (step) => [combine(step, (a, b) => (a === b ? 1 : 0))],
  Where: chosen,
  ReduceProd: (step) => [scalar(productOf(sizesAt(step, 0)))],
};

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
  const [by = 1] = step.inputs[4] === undefined ? [] : integersAt(step, 4);
  const sizes = sizesAt(step, 0);
  if (by === -1)
    return [vector(sizes.toReversed().slice(sizes.length - 1 - (start < 0 ? start + sizes.length : start)))];
  if (by !== 1) throw refusal(step.node, 'it skips sizes');
  return [vector(sizes.slice(start, end >= 2 ** 31 - 1 ? undefined : end))];
}

/** As many times one number as a shape of one axis says. */
function filled(step: Step): readonly Value[] {
  const [count] = sizesAt(step, 0);
  const tensor = step.node.attributes.find(({ name }) => name === 'value')?.t;
  const values = tensor === undefined ? undefined : integersOf(readConstant(tensor));
  if (typeof count !== 'number' || values === undefined || sizesAt(step, 0).length > 1)
    return constantOfShape(step);
  return [vector(new Array<number>(count).fill(values[0] ?? 0))];
}

/** One number as often as a shape of one axis says; anything else is a tensor. */
function repeated(step: Step): readonly Value[] {
  const [sizes, [count, ...more]] = [sizesAt(step, 0), sizesAt(step, 1)];
  if (typeof count !== 'number' || more.length > 0) return expand(step);
  return [vector(sizes.length === 1 ? new Array<Dim>(count).fill(sizes[0] ?? 1) : sizes)];
}

function chosen(step: Step): readonly Value[] {
  const [which, yes, no] = [sizesAt(step, 0), sizesAt(step, 1), sizesAt(step, 2)];
  return [
    vector(
      which.map((each, n) =>
        each === 0 ? (no[no.length === 1 ? 0 : n] ?? 1) : (yes[yes.length === 1 ? 0 : n] ?? 1),
      ),
    ),
  ];
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
  const size = into.size(limit);
  if (size === undefined) throw refusal(node, `it counts up to what no input has (${limit})`);
  const bounds = [into.integers([0]), size, into.integers([1])].map((each) =>
    into.emit('Squeeze', [each], CONSTANT_LEVEL),
  );
  const name = into.emit('Range', bounds, CONSTANT_LEVEL);
  return [tensorOf(CONSTANT_LEVEL, name, TensorProto_DataType.INT64, [limit])];
};

/** Whether a node computes sizes only: its inputs are sizes, or constants of a few whole numbers. */
export function isOfSizes(step: Step): boolean {
  const inputs = step.inputs.filter((input) => input !== undefined);
  return inputs.length > 0 && inputs.every((input) => input.kind === 'sizes' || isFewIntegers(step, input));
}

function isFewIntegers(step: Step, input: Value): boolean {
  const constant = constantAt(step, input);
  if (constant === undefined || constant.dims.length > 2) return false;
  return constant.bytes.length <= FEW_BYTES && integersOf(constant) !== undefined;
}
