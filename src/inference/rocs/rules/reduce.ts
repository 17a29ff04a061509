import { intOf, intsOf } from '../../onnx-file/attributes.ts';
import type { Dim } from '../../onnx-file/graph.ts';
import { tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import type { Part, TensorValue } from '../value.ts';
import { asItIs, innerAxis, inputOf, integersAt, isTiled, type Rule, type Step, tensorAt } from './step.ts';

/** Operators that sum up, or compare, along inner axes. */

export const reduce: Rule = (step) => {
  const x = tensorAt(step, 0);
  const axes = reducedAxes(step, x);
  return [asItIs(step, reducedShape(step, x, axes), x.type)];
};

/** A sum over parts of several levels is the sum of their sums: the request's is computed once (factorization machines). */
export const reduceSum: Rule = (step) => {
  const { into, node } = step;
  const x = tensorAt(step, 0);
  const axes = reducedAxes(step, x);
  const shape = reducedShape(step, x, axes);
  if (x.parts.length === 1 || !axes.includes(x.axis))
    return [x.parts.length === 1 ? asItIs(step, shape, x.type) : otherAxes(step, x, axes, shape)];
  let sum: Part | undefined;
  for (const part of [...x.parts].sort((a, b) => a.level - b.level)) {
    const own = {
      ...part,
      name: into.emit('ReduceSum', [part.name, into.integers(axes)], part.level, keepdims(step)),
    };
    if (sum === undefined) sum = own;
    else sum = { ...own, name: into.emit('Add', [into.partAt(sum, own.level).name, own.name], own.level) };
  }
  if (sum === undefined) throw refusal(node, 'it sums up nothing');
  return [tensorOf(sum.level, sum.name, x.type, shape)];
};

function otherAxes(step: Step, x: TensorValue, axes: readonly number[], shape: readonly Dim[]): TensorValue {
  const keeps = intOf(step.node, 'keepdims', 1) !== 0;
  const axis = keeps ? x.axis : x.axis - axes.filter((each) => each < x.axis).length;
  const parts = x.parts.map((part) => ({
    ...part,
    name: step.into.emit('ReduceSum', [part.name, step.into.integers(axes)], part.level, keepdims(step)),
  }));
  return { ...x, shape, axis, parts };
}

function keepdims({ node }: Step) {
  return node.attributes.filter(({ name }) => name === 'keepdims');
}

function reducedAxes(step: Step, x: TensorValue): number[] {
  const given = intsOf(step.node, 'axes') ?? (step.inputs[1] === undefined ? undefined : integersAt(step, 1));
  const all = x.shape.map((_, axis) => axis);
  return (given === undefined || given.length === 0 ? all : given).map((axis) =>
    innerAxis(step, axis, x.shape.length),
  );
}

function reducedShape({ node }: Step, x: TensorValue, axes: readonly number[]): Dim[] {
  const keeps = intOf(node, 'keepdims', 1) !== 0;
  return x.shape.flatMap((size, axis) => (axes.includes(axis) ? (keeps ? [1] : []) : [size]));
}

/** Over one inner axis, its shape kept. In tiles too, where it works along what each candidate has for itself. */
export const alongAxis: Rule = (step) => {
  const { node, into } = step;
  const x = inputOf(step, 0);
  if (x.kind !== 'tensor') throw refusal(node, 'it works on a constant');
  const axis = innerAxis(step, intOf(node, 'axis', -1), x.shape.length);
  const [part] = x.parts;
  const isOwn = axis === x.shape.length - 1 && part !== undefined && isTiled(x);
  if (!isOwn) return [asItIs(step, x.shape, x.type)];
  const level = into.candidateLevel;
  const name = into.emit(node.op, [part.name], level, node.attributes);
  return [tensorOf(level, name, x.type, x.shape, 'tiles')];
};

export const layerNormalization: Rule = (step) => {
  const x = tensorAt(step, 0);
  innerAxis(step, intOf(step.node, 'axis', -1), x.shape.length);
  return [asItIs(step, x.shape, x.type)];
};

/** Per feature with fixed statistics, as at inference; computed over a batch it would make scores depend on other candidates. */
export const batchNormalization: Rule = (step) => {
  const x = tensorAt(step, 0);
  if (intOf(step.node, 'training_mode', 0) !== 0 || step.node.outputs.length > 1) {
    throw refusal(
      step.node,
      'it computes its statistics over the candidates',
      'Export the model in evaluation mode.',
    );
  }
  return [asItIs(step, x.shape, x.type)];
};
