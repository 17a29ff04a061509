import { sliceConstant } from '../../onnx-file/constant.ts';
import type { Dim } from '../../onnx-file/graph.ts';
import { TensorProto_DataType } from '../../onnx-file/onnx-proto.ts';
import { fitsTiles, tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { CONSTANT_LEVEL, type Level, type Part, type TensorValue, type Value } from '../value.ts';
import { broadcast } from './broadcast.ts';
import { boundariesOf, pieceOf } from './pieces.ts';
import {
  asItIs,
  constantAt,
  inRows,
  isTiled,
  levelOf,
  nameAt,
  type Rule,
  type Step,
  shapeOf,
  typeOf,
} from './step.ts';

/** Operators that compute each number of their output from the numbers at its place. */
export const elementwise: Rule = (step) => [lowerElementwise(step, typeOfFirstTensor(step))];

export const comparison: Rule = (step) => [lowerElementwise(step, TensorProto_DataType.BOOL)];

export const where: Rule = (step) => [lowerElementwise(step, typeOf(step.inputs[1] ?? refuseEmpty(step)))];

export const cast: Rule = (step) => {
  const to = step.node.attributes.find(({ name }) => name === 'to');
  return [lowerElementwise(step, Number(to?.i ?? TensorProto_DataType.FLOAT))];
};

function refuseEmpty({ node }: Step): never {
  throw refusal(node, 'an input is missing');
}

function typeOfFirstTensor(step: Step): number {
  const tensor = step.inputs.find((input) => input?.kind === 'tensor') ?? step.inputs[0];
  return tensor === undefined ? refuseEmpty(step) : typeOf(tensor);
}

function lowerElementwise(step: Step, type: number): TensorValue {
  const inputs = step.inputs.filter((input) => input !== undefined);
  const shape = broadcast(step.node, inputs.map(shapeOf));
  const tensors = inputs.filter((input) => input.kind === 'tensor');
  const tiled = tensors.some(isTiled) ? inTiles(step, shape, type) : undefined;
  if (tiled !== undefined) return tiled;
  const mixed = tensors.map((tensor) => inRows(step, tensor)).filter(({ parts }) => parts.length > 1);
  const [first] = mixed;
  if (first === undefined) return asItIs(step, shape, type);
  const isAligned = mixed.every((each) => each.axis === first.axis && each.shape.length === shape.length);
  return isAligned ? byParts(step, mixed, shape, type, first.axis) : asItIs(step, shape, type);
}

/** In tiles, where all inputs can be had so; `undefined` where one cannot. */
function inTiles(step: Step, shape: readonly Dim[], type: number): TensorValue | undefined {
  const { node, inputs, into } = step;
  const names: string[] = [];
  for (const input of inputs) {
    const name = input === undefined ? '' : nameInTiles(step, input, shape);
    if (name === undefined) return undefined;
    names.push(name);
  }
  const level = into.candidateLevel;
  return tensorOf(level, into.emit(node.op, names, level, node.attributes), type, shape, 'tiles');
}

/** Slots stand on the last axis but one: what has a size of its own there must be a candidate's. */
function nameInTiles(step: Step, input: Value, shape: readonly Dim[]): string | undefined {
  const { into } = step;
  const own = shapeOf(input);
  const isSame = own.length === shape.length && own.every((size, axis) => size === shape[axis]);
  if (input.kind !== 'tensor')
    return (own.at(-2) ?? 1) === 1 ? nameAt(step, input, CONSTANT_LEVEL) : undefined;
  const [part] = input.parts;
  if (part === undefined || input.parts.length > 1) return undefined;
  if (part.level === into.candidateLevel) {
    if (!isSame || (part.layout === 'rows' && !fitsTiles(own))) return undefined;
    return into.toTiles(part, own).name;
  }
  if ((own.at(-2) ?? 1) !== 1) return undefined;
  return own.length === shape.length ? into.perTile(part) : undefined;
}

/** Each stretch of the split axis at the latest level that it needs. */
function byParts(
  step: Step,
  mixed: readonly TensorValue[],
  shape: readonly Dim[],
  type: number,
  axis: number,
): TensorValue {
  const { node, inputs, into } = step;
  const stretches = boundariesOf(step, mixed, axis);
  const parts: Part[] = [];
  for (const { start, end, level } of mergeByLevel(step, stretches, axis)) {
    refuseLeak(step, mixed, start, end, level, axis);
    const names = inputs.map((input) =>
      input === undefined ? '' : cut(step, input, shape, axis, start, end, level),
    );
    parts.push({
      level,
      name: into.emit(node.op, names, level, node.attributes),
      size: end - start,
      layout: 'rows',
    });
  }
  return { kind: 'tensor', type, shape, axis, parts };
}

function mergeByLevel(
  step: Step,
  boundaries: readonly number[],
  axis: number,
): { start: number; end: number; level: Level }[] {
  const merged: { start: number; end: number; level: Level }[] = [];
  boundaries.slice(1).forEach((end, n) => {
    const start = boundaries[n] ?? 0;
    const level = levelBetween(step, start, end, axis);
    const last = merged.at(-1);
    if (last?.level === level) last.end = end;
    else merged.push({ start, end, level });
  });
  return merged;
}

function levelBetween({ inputs }: Step, start: number, end: number, axis: number): Level {
  return inputs.reduce<Level>((latest, input) => {
    if (input?.kind !== 'tensor') return latest;
    if (input.parts.length === 1 || input.shape[axis] === 1) return Math.max(latest, levelOf(input));
    return partsBetween(input, start, end).reduce((max, { level }) => Math.max(max, level), latest);
  }, CONSTANT_LEVEL);
}

function partsBetween({ parts }: TensorValue, start: number, end: number): Part[] {
  let at = 0;
  return parts.filter(({ size }) => {
    const [from, to] = [at, at + Number(size)];
    at = to;
    return from < end && to > start;
  });
}

/** Columns of an earlier level that a later one reaches: every later layer would compute them once per candidate. */
function refuseLeak(
  { node, options }: Step,
  mixed: readonly TensorValue[],
  start: number,
  end: number,
  level: Level,
  axis: number,
): void {
  if (!options.strict) return;
  const reached = mixed.some(
    (tensor) =>
      tensor.shape[axis] !== 1 &&
      partsBetween(tensor, start, end).some((part) => part.level !== CONSTANT_LEVEL && part.level < level),
  );
  if (!reached) return;
  throw refusal(
    node,
    `a later group reaches columns ${start} to ${end} of an earlier one: a candidate reaches the request side`,
    'Train the layer with a Generalized Layer Mask (docs/models.md), or compile with --unmasked to share less.',
  );
}

function cut(
  step: Step,
  input: Value,
  shape: readonly Dim[],
  axis: number,
  start: number,
  end: number,
  level: Level,
): string {
  const own = shapeOf(input);
  const ownAxis = axis - shape.length + own.length;
  if (ownAxis < 0 || own[ownAxis] === 1) return nameAt(step, input, level);
  const constant = constantAt(step, input);
  if (constant !== undefined) return step.into.constant(sliceConstant(constant, ownAxis, start, end));
  if (input.kind !== 'tensor') throw refusal(step.node, 'it computes with sizes');
  return pieceOf(step, inRows(step, input), axis, start, end, level);
}
