import type { Dim } from '../../onnx-file/graph.ts';
import { fitsTiles, rowSize, tensorOf } from '../lowering.ts';
import { refusal } from '../refusal.ts';
import { ROWS, rowsFactor } from '../size.ts';
import type { TensorValue, Value } from '../value.ts';
import { broadcast } from './broadcast.ts';
import { lowerLinear, weightsOf } from './linear.ts';
import {
  asItIs,
  constantAt,
  floatConstant,
  inputOf,
  inRows,
  isTiled,
  levelOf,
  type Rule,
  type Step,
  shapeOf,
  typeOf,
} from './step.ts';

/** Below so many times a candidate's own numbers, a copy of the request's for each candidate costs less than tiles do. */
const COPIES_RATIO_MAX = 2;

export const matmul: Rule = (step) => {
  const [left, right] = [inputOf(step, 0), inputOf(step, 1)];
  const shape = productShape(step, shapeOf(left), shapeOf(right));
  if (left.kind === 'tensor' && right.kind === 'constant') return [byConstant(step, left, right, shape)];
  if (left.kind === 'constant' && right.kind === 'tensor') return [compression(step, left, right, shape)];
  if (left.kind === 'tensor' && right.kind === 'tensor') return [meeting(step, left, right, shape)];
  return [asItIs(step, shape, typeOf(left))];
};

function byConstant(step: Step, left: TensorValue, right: Value, shape: readonly Dim[]): TensorValue {
  const weights = floatConstant(step, right) === undefined ? undefined : constantAt(step, right);
  const x = inRows(step, left);
  if (weights?.dims.length !== 2 || x.parts.length === 1) return asItIs(step, shape, left.type);
  return lowerLinear(step, { x, weights, bias: undefined, sums: 'features' }, shape);
}

/** W·x over stacked rows of features, some of them the request's. */
function compression(step: Step, left: Value, right: TensorValue, shape: readonly Dim[]): TensorValue {
  const x = inRows(step, right);
  const weights = x.parts.length === 1 ? undefined : weightsOf(step, left, true);
  return weights === undefined
    ? asItIs(step, shape, right.type)
    : lowerLinear(step, { x, weights, bias: undefined, sums: 'stack' }, shape);
}

/** Two values of the inputs: where candidates meet a request's many rows, each tile of candidates meets its request's once. */
function meeting(step: Step, left: TensorValue, right: TensorValue, shape: readonly Dim[]): TensorValue {
  const { into, options } = step;
  const [part] = left.parts;
  const isCandidates = levelOf(left) === into.candidateLevel && left.parts.length === 1;
  const isBefore = levelOf(right) < into.candidateLevel && right.parts.length === 1;
  const canTile = right.shape[0] === ROWS && (isTiled(left) || fitsTiles(left.shape));
  const [values] = right.parts;
  if (part === undefined || values === undefined) return asItIs(step, shape, left.type);
  if (options.attention === 'copies' || !isCandidates || !isBefore || !canTile)
    return asItIs(step, shape, left.type);
  if (!isTiled(left) && isSmall(left.shape, right.shape)) return asItIs(step, shape, left.type);
  const level = into.candidateLevel;
  const tiles = into.toTiles(part, left.shape).name;
  return tensorOf(
    level,
    into.emit('MatMul', [tiles, into.perTile(values)], level),
    left.type,
    shape,
    'tiles',
  );
}

function isSmall(candidate: readonly Dim[], request: readonly Dim[]): boolean {
  const [own, other] = [rowSize(candidate), rowSize(request)];
  return typeof own === 'number' && typeof other === 'number' && other <= COPIES_RATIO_MAX * own;
}

/** As numpy's matmul, for values whose rows stay apart. */
function productShape({ node }: Step, left: readonly Dim[], right: readonly Dim[]): Dim[] {
  const isMatrices = left.length >= 2 && right.length >= 2;
  if (!isMatrices) throw refusal(node, 'a product with a vector', 'Unsqueeze the vector to a matrix.');
  if (rowsFactor(left) !== undefined && left.length === 2 && right.length > 2) {
    throw refusal(node, 'its rows would move to another axis');
  }
  const bothRows = rowsFactor(left) !== undefined && rowsFactor(right) !== undefined;
  if (rowsFactor(right) !== undefined && right.length === 2) {
    throw refusal(
      node,
      'it sums over rows, or lets each row meet every other: one candidate would reach another',
    );
  }
  if (bothRows && left.length !== right.length)
    throw refusal(node, 'the rows of one input would meet another axis of the other');
  const [inner, other] = [left.at(-1), right.at(-2)];
  if (inner !== other) throw refusal(node, `its inputs do not fit: ${inner} against ${other}`);
  const batch = broadcast(node, [left.slice(0, -2), right.slice(0, -2)]);
  return [...batch, left.at(-2) ?? 1, right.at(-1) ?? 1];
}
