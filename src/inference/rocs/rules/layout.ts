import { intOf, intsOf } from '../../onnx-file/attributes.ts';
import type { Dim } from '../../onnx-file/graph.ts';
import { intAttribute, intsAttribute } from '../../onnx-file/write-graph.ts';
import { tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { productOf, quotientOf, ROWS, rowsFactor } from '../size.ts';
import { CONSTANT_LEVEL, type Part, type TensorValue } from '../value.ts';
import {
  asItIs,
  hasRows,
  inputOf,
  integersAt,
  type Rule,
  type Step,
  sizesAt,
  tensorAt,
  typeOf,
} from './step.ts';

/** Operators that move numbers about, and leave rows where they are. */

export const transpose: Rule = (step) => {
  const x = tensorAt(step, 0);
  const perm = intsOf(step.node, 'perm') ?? x.shape.map((_, axis) => x.shape.length - 1 - axis);
  if (hasRows(x) && perm[0] !== 0) {
    throw refusal(
      step.node,
      'it moves the rows to another axis',
      'PyTorch’s MultiheadAttention puts sequences first: write its heads with scaled_dot_product_attention, rows first.',
    );
  }
  const shape = perm.map((axis) => x.shape[axis] ?? 1);
  if (x.parts.length === 1) return [asItIs(step, shape, x.type)];
  return [
    eachPart(x, shape, perm.indexOf(x.axis), (part) =>
      step.into.emit('Transpose', [part.name], part.level, [intsAttribute('perm', perm)]),
    ),
  ];
};

export const unsqueeze: Rule = (step) => {
  const x = tensorAt(step, 0);
  const rank = x.shape.length + axesOf(step).length;
  const axes = axesOf(step)
    .map((axis) => (axis < 0 ? axis + rank : axis))
    .sort((a, b) => a - b);
  if (hasRows(x) && axes[0] === 0) throw refusal(step.node, 'it moves the rows to another axis');
  const shape = [...x.shape];
  for (const axis of axes) shape.splice(axis, 0, 1);
  const axis = axes.reduce((at, added) => (added <= at ? at + 1 : at), x.axis);
  return [
    eachPart(x, shape, axis, (part) =>
      step.into.emit('Unsqueeze', [part.name, step.into.integers(axes)], part.level),
    ),
  ];
};

export const squeeze: Rule = (step) => {
  const x = tensorAt(step, 0);
  const given = step.inputs[1] === undefined ? intsOf(step.node, 'axes') : integersAt(step, 1);
  const axes = (given ?? x.shape.flatMap((size, axis) => (size === 1 ? [axis] : []))).map((axis) =>
    axis < 0 ? axis + x.shape.length : axis,
  );
  if (hasRows(x) && axes.includes(0)) throw refusal(step.node, 'it takes the rows away');
  const shape = x.shape.filter((_, axis) => !axes.includes(axis));
  const axis = x.axis - axes.filter((each) => each < x.axis).length;
  return [
    eachPart(x, shape, axis, (part) =>
      step.into.emit('Squeeze', [part.name, step.into.integers(axes)], part.level),
    ),
  ];
};

/** Opsets before 13 have axes as an attribute. */
function axesOf(step: Step): number[] {
  return intsOf(step.node, 'axes') ?? integersAt(step, 1);
}

function eachPart(
  x: TensorValue,
  shape: readonly Dim[],
  axis: number,
  emit: (part: Part) => string,
): TensorValue {
  return { ...x, shape, axis, parts: x.parts.map((part) => ({ ...part, name: emit(part) })) };
}

export const flatten: Rule = (step) => {
  const x = tensorAt(step, 0);
  const axis = intOf(step.node, 'axis', 1);
  if (axis !== 1) throw refusal(step.node, 'it folds other axes into the rows');
  return [lowerReshape(step, x, [x.shape[0] ?? 1, productOf(x.shape.slice(1))])];
};

export const reshape: Rule = (step) => {
  const x = tensorAt(step, 0);
  return [lowerReshape(step, x, targetShape(step, x, sizesAt(step, 1)))];
};

function targetShape(step: Step, x: TensorValue, target: readonly Dim[]): Dim[] {
  const copied = target.map((size, axis) => (size === 0 ? (x.shape[axis] ?? 1) : size));
  if (!copied.includes(-1)) return copied;
  const rest = quotientOf(productOf(x.shape), productOf(copied.filter((size) => size !== -1)));
  if (rest === undefined)
    throw refusal(step.node, `[${x.shape.join(', ')}] does not fit [${target.join(', ')}]`);
  return copied.map((size) => (size === -1 ? rest : size));
}

function lowerReshape(step: Step, x: TensorValue, shape: readonly Dim[]): TensorValue {
  const { node, into } = step;
  const isFolded = hasRows(x) && shape[0] !== ROWS;
  if (isFolded && rowsFactor(shape) === undefined) throw refusal(node, 'it folds rows into other axes');
  const divided = x.parts.length === 1 || isFolded ? undefined : dividedAxis(x, shape);
  if (divided === undefined) {
    const level = x.parts.reduce((max, part) => Math.max(max, part.level), -1);
    const whole = into.at(x, level);
    return tensorOf(
      level,
      into.emit('Reshape', [whole.name, spell(step, x.shape, shape)], level),
      x.type,
      shape,
    );
  }
  const parts = x.parts.map((part) => {
    const size = Number(part.size) * divided.ratio;
    const own = shape.map((each, axis) => (axis === divided.axis ? size : each));
    return {
      ...part,
      size,
      name: into.emit('Reshape', [part.name, spell(step, x.shape, own)], part.level),
    };
  });
  return { ...x, shape, axis: divided.axis, parts };
}

/** Where the parts of a value lie in another shape of it: an axis that splits in two, or takes the next one in. */
function dividedAxis(
  { shape: from, axis, parts }: TensorValue,
  to: readonly Dim[],
): { axis: number; ratio: number } | undefined {
  const isSame = (end: number) => from.slice(0, end).every((size, n) => size === to[n]);
  if (!isSame(axis)) return undefined;
  const inner = productOf(from.slice(axis + 1));
  const own = productOf(to.slice(axis + 1));
  const ratio =
    Number(quotientOf(inner, own) ?? Number.NaN) || 1 / Number(quotientOf(own, inner) ?? Number.NaN);
  const fits = parts.every(({ size }) => Number.isInteger(Number(size) * ratio));
  return fits && Number.isFinite(ratio) ? { axis, ratio } : undefined;
}

/** A shape: 0 keeps the size of the axis at its place, one -1 stands for what a call decides; more of them are computed. */
function spell({ node, into }: Step, from: readonly Dim[], to: readonly Dim[]): string {
  const spelled = to.map((size, axis) => {
    if (typeof size === 'number') return size;
    return from[axis] === size ? 0 : -1;
  });
  if (spelled.filter((size) => size === -1).length <= 1) return into.integers(spelled);
  const pieces = spelled.map((size, axis) => {
    const isFree = size !== -1 || axis === 0;
    const piece = isFree ? into.integers([size]) : into.size(to[axis] ?? 1);
    if (piece === undefined) throw refusal(node, `two sizes of [${to.join(', ')}] are known to a call only`);
    return piece;
  });
  return into.emit('Concat', pieces, CONSTANT_LEVEL, [intAttribute('axis', 0)]);
}

export const expand: Rule = (step) => {
  const { node, into } = step;
  const x = inputOf(step, 0);
  const sizes = sizesAt(step, 1);
  const own = x.kind === 'sizes' ? [] : x.shape;
  const rank = Math.max(own.length, sizes.length);
  const at = (shape: readonly Dim[], axis: number) => shape[axis - rank + shape.length] ?? 1;
  const shape = Array.from({ length: rank }, (_, axis) =>
    at(own, axis) === 1 ? at(sizes, axis) : at(own, axis),
  );
  if (own[0] === ROWS && own.length < rank) throw refusal(node, 'it moves the rows to another axis');
  const isNew = shape[0] === ROWS && own[0] !== ROWS;
  const spelled = shape.map((size, axis) => {
    if (axis === 0 && size === ROWS) return 1;
    if (typeof size === 'number') return size;
    if (at(own, axis) === size) return 1;
    throw refusal(node, `it repeats to a size that only a call knows (${size})`);
  });
  const level = isNew ? 0 : x.kind === 'tensor' ? Math.max(...x.parts.map((part) => part.level)) : -1;
  const name =
    x.kind === 'tensor'
      ? into.at(tensorAt(step, 0), level).name
      : x.kind === 'constant'
        ? x.name
        : into.integers([]);
  const target = isNew ? rowsThen(step, spelled.slice(1)) : into.integers(spelled);
  return [tensorOf(level, into.emit('Expand', [name, target], level), typeOf(x), shape)];
};

function rowsThen({ into }: Step, rest: readonly number[]): string {
  const rows = into.rowsOf(0);
  return rest.length === 0
    ? rows
    : into.emit('Concat', [rows, into.integers(rest)], 0, [intAttribute('axis', 0)]);
}
