import { floatsOf, integersOf } from '../../onnx-file/constant.ts';
import type { Dim, OnnxConstant, OnnxNode } from '../../onnx-file/graph.ts';
import { TensorProto_DataType } from '../../onnx-file/onnx-proto.ts';
import { type Lowering, tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { rowsFactor } from '../size.ts';
import { CONSTANT_LEVEL, type Level, type TensorValue, type Value } from '../value.ts';

/** One node on its way into the compiled graph. */
export interface Step {
  readonly node: OnnxNode;
  /** `undefined` where an optional input is left out. */
  readonly inputs: readonly (Value | undefined)[];
  readonly into: Lowering;
  readonly options: CompileOptions;
}

export interface CompileOptions {
  /** Refuse a layer that lets a later level into columns that were an earlier level's: it shares less than its mask could. */
  readonly strict: boolean;
  /** How candidates meet what has many rows for each request (keys and values): in tiles of one request, or with a copy for each candidate. */
  readonly attention: 'tiles' | 'copies';
}

/** How a node of one operator is carried over. @throws MillraceError INVALID_MODEL that names the node */
export type Rule = (step: Step) => readonly Value[];

export function inputOf({ node, inputs }: Step, position: number): Value {
  const input = inputs[position];
  if (input === undefined) throw refusal(node, `input ${position} is missing`);
  return input;
}

/** An input as a tensor in rows: what lies in tiles is taken out of them. */
export function tensorAt(step: Step, position: number): TensorValue {
  const input = inputOf(step, position);
  if (input.kind === 'sizes') throw refusal(step.node, `input ${position} is a size`);
  if (input.kind === 'constant') return tensorOf(CONSTANT_LEVEL, input.name, input.type, input.shape);
  return inRows(step, input);
}

export function inRows({ into, node }: Step, value: TensorValue): TensorValue {
  if (value.parts.every(({ layout }) => layout === 'rows')) return value;
  try {
    return { ...value, parts: value.parts.map((part) => into.toRows(part, value.shape)) };
  } catch {
    throw refusal(
      node,
      'it reads attention over a sequence whose length is not fixed in another way than softmax and values',
    );
  }
}

export function isTiled({ parts }: TensorValue): boolean {
  return parts.some(({ layout }) => layout === 'tiles');
}

export function levelOf({ parts }: TensorValue): Level {
  return parts.reduce((max, { level }) => Math.max(max, level), CONSTANT_LEVEL);
}

/** The name of an input in the compiled graph with rows of `level`. */
export function nameAt(step: Step, value: Value, level: Level): string {
  switch (value.kind) {
    case 'constant':
      return value.name;
    case 'sizes':
      return sizesName(step, value.sizes, value.isScalar);
    case 'tensor':
      return step.into.at(inRows(step, value), level).name;
    default:
      return value satisfies never;
  }
}

function sizesName({ node, into }: Step, sizes: readonly Dim[], isScalar: boolean): string {
  const known = sizes.filter((size) => typeof size === 'number');
  if (known.length < sizes.length) throw refusal(node, 'it computes with a size that only a call knows');
  const vector = into.integers(known);
  return isScalar ? into.emit('Squeeze', [vector], CONSTANT_LEVEL) : vector;
}

/** Carries a node over as it is, at the latest level of its inputs. It must treat each row by itself: that is for the caller to have checked. */
export function asItIs(step: Step, shape: readonly Dim[], type: number): TensorValue {
  const { node, inputs, into } = step;
  const level = latestLevel(inputs);
  const names = inputs.map((input) => (input === undefined ? '' : nameAt(step, input, level)));
  return tensorOf(level, into.emit(node.op, names, level, node.attributes), type, shape);
}

export function latestLevel(inputs: readonly (Value | undefined)[]): Level {
  return inputs.reduce<Level>(
    (max, input) => (input?.kind === 'tensor' ? Math.max(max, levelOf(input)) : max),
    CONSTANT_LEVEL,
  );
}

export function hasRows({ shape }: TensorValue): boolean {
  return rowsFactor(shape) !== undefined;
}

export function shapeOf(value: Value): readonly Dim[] {
  return value.kind === 'sizes' ? (value.isScalar ? [] : [value.sizes.length]) : value.shape;
}

export function typeOf(value: Value): number {
  return value.kind === 'sizes' ? TensorProto_DataType.INT64 : value.type;
}

/** An axis counted from the front. @throws where it is the rows, which every node must leave apart */
export function innerAxis({ node }: Step, axis: number, rank: number): number {
  const front = axis < 0 ? axis + rank : axis;
  if (front === 0) {
    throw refusal(
      node,
      'it works across rows, so that one candidate would reach another',
      'Compute it over features, or leave it out of the exported model.',
    );
  }
  return front;
}

/** Integers that are known at compile time. */
export function integersAt(step: Step, position: number): number[] {
  const sizes = sizesAt(step, position);
  const known = sizes.filter((size) => typeof size === 'number');
  if (known.length < sizes.length)
    throw refusal(step.node, `input ${position} depends on a size that only a call knows`);
  return known;
}

/** Sizes that are known at compile time but for their symbols. */
export function sizesAt(step: Step, position: number): readonly Dim[] {
  const input = inputOf(step, position);
  if (input.kind === 'sizes') return input.sizes;
  const constant = constantAt(step, input);
  const values = constant === undefined ? undefined : integersOf(constant);
  if (values === undefined) throw refusal(step.node, `input ${position} is not known at compile time`);
  return values;
}

export function constantAt({ into }: Step, value: Value | undefined): OnnxConstant | undefined {
  return value?.kind === 'constant' ? into.constants.get(value.name) : undefined;
}

export function floatConstant(
  step: Step,
  value: Value | undefined,
): { values: Float32Array; dims: readonly number[] } | undefined {
  const constant = constantAt(step, value);
  const values = constant === undefined ? undefined : floatsOf(constant);
  return constant === undefined || values === undefined ? undefined : { values, dims: constant.dims };
}
