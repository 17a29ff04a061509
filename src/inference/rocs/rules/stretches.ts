import { intOf, intsOf } from '../../onnx-file/attributes.ts';
import { intAttribute } from '../../onnx-file/write-graph.ts';
import { refusal } from '../refusal.ts';
import { differenceOf, sumOf } from '../size.ts';
import type { Part, TensorValue } from '../value.ts';
import { stretch } from './pieces.ts';
import {
  asItIs,
  innerAxis,
  inputOf,
  inRows,
  integersAt,
  levelOf,
  type Rule,
  type Step,
  tensorAt,
} from './step.ts';

/** Ends beyond it mean the end. */
const INT32_MAX = 2 ** 31 - 1;

/** Operators that put values side by side along an axis, or cut stretches out of them. */

export const concat: Rule = (step) => {
  const { node, into } = step;
  const inputs = step.inputs.map((_, n) => inputOf(step, n));
  const tensors = inputs.map((input) => {
    if (input.kind !== 'tensor')
      throw refusal(node, 'it puts constants beside rows', 'Expand them to the rows first.');
    return inRows(step, input);
  });
  const [first] = tensors;
  if (first === undefined) throw refusal(node, 'it has no inputs');
  const axis = innerAxis(step, intOf(node, 'axis', 0), first.shape.length);
  const sizes = tensors.map(({ shape }) => shape[axis] ?? 1);
  const shape = first.shape.map((size, n) => (n === axis ? sumOf(sizes) : size));
  const parts = tensors.flatMap((tensor, n): readonly Part[] => {
    if (tensor.parts.length > 1 && tensor.axis === axis) return tensor.parts;
    return [{ ...into.at(tensor, levelOf(tensor)), size: sizes[n] ?? 1 }];
  });
  return [{ kind: 'tensor', type: first.type, shape, axis, parts: joinNeighbours(step, parts, axis) }];
};

/** Neighbours of one level become one part: later layers compute them together. */
function joinNeighbours({ into }: Step, parts: readonly Part[], axis: number): Part[] {
  const joined: Part[][] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.[0]?.level === part.level) last.push(part);
    else joined.push([part]);
  }
  return joined.flatMap((group) => {
    const [first] = group;
    if (first === undefined || group.length === 1) return group;
    const names = group.map(({ name }) => name);
    const name = into.emit('Concat', names, first.level, [intAttribute('axis', axis)]);
    return [
      { level: first.level, name, size: sumOf(group.map(({ size }) => size)), layout: 'rows' as const },
    ];
  });
}

export const split: Rule = (step) => {
  const { node } = step;
  const x = tensorAt(step, 0);
  const axis = innerAxis(step, intOf(node, 'axis', 0), x.shape.length);
  const sizes = splitSizes(step, x, axis);
  let at = 0;
  return sizes.map((size) => {
    const start = at;
    at += size;
    return cutOut(step, x, axis, start, at);
  });
};

function splitSizes(step: Step, x: TensorValue, axis: number): number[] {
  const { node } = step;
  const given = intsOf(node, 'split') ?? (step.inputs[1] === undefined ? undefined : integersAt(step, 1));
  if (given !== undefined) return given;
  const count = intOf(node, 'num_outputs', node.outputs.length);
  const size = x.shape[axis];
  if (typeof size !== 'number') throw refusal(node, 'it splits a size that only a call knows');
  const each = Math.ceil(size / count);
  return Array.from({ length: count }, (_, n) => Math.min(each, size - n * each));
}

/** Cuts with step 1 along fixed axes are carried over part by part; others as they are, if they leave the rows alone. */
export const slice: Rule = (step) => {
  const { node } = step;
  let x = tensorAt(step, 0);
  const starts = integersAt(step, 1);
  const ends = integersAt(step, 2);
  const axes = step.inputs[3] === undefined ? starts.map((_, n) => n) : integersAt(step, 3);
  const steps = step.inputs[4] === undefined ? starts.map(() => 1) : integersAt(step, 4);
  axes.forEach((each, n) => {
    const axis = innerAxis(step, each, x.shape.length);
    const size = x.shape[axis];
    if (steps[n] !== 1) throw refusal(node, 'it skips numbers (its steps are not 1)');
    if (typeof size !== 'number') {
      x = cutOpen(step, x, axis, starts[n] ?? 0, ends[n] ?? 0);
      return;
    }
    const [start, end] = [starts[n] ?? 0, ends[n] ?? size].map((at) => clamp(at, size));
    x = cutOut(step, x, axis, start ?? 0, end ?? size);
  });
  return [x];
};

/** Along an axis whose size a call decides: from a fixed start to the end, or to a fixed distance from it. */
function cutOpen(step: Step, x: TensorValue, axis: number, start: number, end: number): TensorValue {
  const { into, node } = step;
  const level = levelOf(x);
  const size = x.shape[axis] ?? 1;
  const isOpen = end >= INT32_MAX;
  if (start < 0 || (!isOpen && end >= 0)) {
    throw refusal(node, `it cuts at a place that depends on a size that only a call knows (${size})`);
  }
  if (start === 0 && isOpen) return x;
  const whole = into.at(x, level);
  const bounds = [[start], [isOpen ? INT32_MAX : end], [axis], [1]].map((each) => into.integers(each));
  const name = into.emit('Slice', [whole.name, ...bounds], level);
  const left = differenceOf(size, start - (isOpen ? 0 : end));
  const shape = x.shape.map((each, n) => (n === axis ? left : each));
  return { ...x, axis: 1, shape, parts: [{ ...whole, name }] };
}

function clamp(at: number, size: number): number {
  return Math.min(Math.max(at < 0 ? at + size : at, 0), size);
}

/** [start, end) of a value along an axis. */
function cutOut(step: Step, x: TensorValue, axis: number, start: number, end: number): TensorValue {
  const shape = x.shape.map((size, n) => (n === axis ? end - start : size));
  if (x.parts.length === 1 || x.axis !== axis) {
    const size = Number(x.shape[axis]);
    const parts = x.parts.map((part) => {
      const cut = stretch(step, part, axis, start, end, size);
      return x.parts.length === 1 ? cut : { ...cut, size: part.size };
    });
    return { ...x, shape, parts };
  }
  const parts: Part[] = [];
  let at = 0;
  for (const part of x.parts) {
    const size = Number(part.size);
    const [from, to] = [Math.max(start - at, 0), Math.min(end - at, size)];
    at += size;
    if (from < to) parts.push(stretch(step, part, axis, from, to, size));
  }
  return { ...x, shape, parts };
}

/** Picks along an inner axis, or rows out of a constant table by the values of a tensor (an embedding). */
export const gather: Rule = (step) => {
  const { node } = step;
  const [data, indices] = [inputOf(step, 0), inputOf(step, 1)];
  const axis = intOf(node, 'axis', 0);
  if (data.kind === 'tensor') {
    const front = innerAxis(step, axis, data.shape.length);
    if (indices.kind === 'tensor')
      throw refusal(node, 'it picks by values of the inputs', 'Use GatherElements.');
    const picked = indices.kind === 'sizes' ? [indices.sizes.length] : indices.shape;
    const shape = [...data.shape.slice(0, front), ...picked, ...data.shape.slice(front + 1)];
    return [asItIs(step, shape, data.type)];
  }
  if (indices.kind !== 'tensor' || axis !== 0 || data.kind !== 'constant') {
    throw refusal(node, 'it picks out of a constant along another axis than the first');
  }
  return [asItIs(step, [...indices.shape, ...data.shape.slice(1)], data.type)];
};
