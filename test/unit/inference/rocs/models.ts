import { float32, int64 } from '../../../../src/inference/onnx-file/constant.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { intAttribute, intsAttribute } from '../../../../src/inference/onnx-file/write-graph.ts';
import { GraphBuilder } from './graph-builder.ts';

export interface Model {
  graph: OnnxGraph;
  groups: string[][];
}

const GROUPS = [['user'], ['item']];

/** Cross layers over both sides, each column of the request side reached by request columns only (or not, `masked: false`); a layer on top. */
export function crossNetwork(
  request: number,
  candidate: number,
  layers: number,
  { masked = true, seed = 1 } = {},
): Model {
  const b = new GraphBuilder(seed);
  const width = request + candidate;
  const first = b.node(
    'Concat',
    [b.input('user', request), b.input('item', candidate)],
    [intAttribute('axis', 1)],
  );
  const isZero = (row: number, column: number) => masked && column < request && row >= request;
  let x = first;
  for (let layer = 0; layer < layers; layer += 1) {
    const linear = b.node('Gemm', [x, b.weights([width, width], isZero), b.weights([width])]);
    x = b.node('Add', [b.node('Mul', [first, linear], [], `cross_${layer}`), x], [], `residual_${layer}`);
  }
  const hidden = b.node('Relu', [b.node('Gemm', [x, b.weights([width, 16]), b.weights([16])])]);
  const head = b.node('Gemm', [hidden, b.weights([16, 1]), b.weights([1])]);
  return { graph: b.build({ from: b.node('Squeeze', [head, b.numbers(1)]), shape: [] }), groups: GROUPS };
}

/** A plain MLP over both sides: only its first layer can be shared. */
export function perceptron(request: number, candidate: number, hidden: number): Model {
  const b = new GraphBuilder();
  const both = b.node(
    'Concat',
    [b.input('item', candidate), b.input('user', request)],
    [intAttribute('axis', -1)],
  );
  const first = b.node('Relu', [
    b.node('Add', [b.node('MatMul', [both, b.weights([request + candidate, hidden])]), b.weights([hidden])]),
  ]);
  return {
    graph: b.build({ from: b.node('MatMul', [first, b.weights([hidden, 2])]), shape: [2] }),
    groups: GROUPS,
  };
}

/** Layers of both sides of these widths, the last one's columns the scores: each a probability of its own, in one of the ways in which exporters write it. */
export function layered(
  request: number,
  candidate: number,
  widths: readonly number[],
  { scores = 'sigmoid', seed = 1 }: { scores?: 'sigmoid' | 'reciprocal' | 'none'; seed?: number } = {},
): Model {
  const b = new GraphBuilder(seed);
  const sides = [b.input('user', request), b.input('item', candidate)];
  let x = b.node('Concat', sides, [intAttribute('axis', 1)]);
  let inner = request + candidate;
  widths.forEach((width, n) => {
    const weights = b.weights([inner, width]);
    x =
      n % 2 === 0
        ? b.node('Gemm', [x, weights, b.weights([width])])
        : b.node('Add', [b.node('MatMul', [x, weights]), b.weights([width])]);
    if (n < widths.length - 1) x = b.node('Relu', [x]);
    inner = width;
  });
  const odds = (): string =>
    b.node('Add', [b.node('Exp', [b.node('Neg', [x])]), b.constant(float32([], [1]))]);
  if (scores === 'sigmoid') x = b.node('Sigmoid', [x]);
  if (scores === 'reciprocal') x = b.node('Reciprocal', [odds()]);
  const column = (n: number): string =>
    b.node('Gather', [x, b.constant(int64([], [n]))], [intAttribute('axis', 1)]);
  const from =
    inner === 1 ? [b.node('Squeeze', [x, b.numbers(1)])] : Array.from({ length: inner }, (_, n) => column(n));
  return { graph: b.build(...from.map((each) => ({ from: each, shape: [] }))), groups: GROUPS };
}

/** A layer of each side and their sum, as whoever writes the split by hand has it: two products without a bias, and what onnxruntime may make of them. */
export function sumOfProducts(request: number, candidate: number, hidden: number): Model {
  const b = new GraphBuilder();
  const user = b.node('MatMul', [b.input('user', request), b.weights([request, hidden])]);
  const item = b.node('MatMul', [b.input('item', candidate), b.weights([candidate, hidden])]);
  const active = b.node('Relu', [b.node('Add', [user, item])]);
  const score = b.node('Sigmoid', [b.node('MatMul', [active, b.weights([hidden, 1])])]);
  return { graph: b.build({ from: score, shape: [1] }), groups: GROUPS };
}

/** Two towers and their product. */
export function twoTowers(request: number, candidate: number, width: number): Model {
  const b = new GraphBuilder();
  const user = b.node('Relu', [
    b.node('Gemm', [b.input('user', request), b.weights([request, width]), b.weights([width])]),
  ]);
  const item = b.node('Relu', [
    b.node('Gemm', [b.input('item', candidate), b.weights([candidate, width]), b.weights([width])]),
  ]);
  const score = b.node(
    'ReduceSum',
    [b.node('Mul', [user, item]), b.numbers(1)],
    [intAttribute('keepdims', 0)],
  );
  return { graph: b.build({ from: score, shape: [] }), groups: GROUPS };
}

/** Fields of both sides as embeddings side by side, and a factorization machine over all pairs. */
export function factorizationMachine(userFields: number, itemFields: number, width: number): Model {
  const b = new GraphBuilder();
  const fields = userFields + itemFields;
  const flat = b.node(
    'Concat',
    [b.input('user', userFields * width), b.input('item', itemFields * width)],
    [intAttribute('axis', 1)],
  );
  const stacked = b.node('Reshape', [flat, b.numbers(-1, fields, width)]);
  const sum = b.node('ReduceSum', [stacked, b.numbers(1)], [intAttribute('keepdims', 0)]);
  const squares = b.node(
    'ReduceSum',
    [b.node('Mul', [stacked, stacked]), b.numbers(1)],
    [intAttribute('keepdims', 0)],
  );
  const pairs = b.node('Sub', [b.node('Mul', [sum, sum]), squares]);
  return {
    graph: b.build({
      from: b.node('ReduceSum', [pairs, b.numbers(1)], [intAttribute('keepdims', 0)]),
      shape: [],
    }),
    groups: GROUPS,
  };
}

/** Candidates look at the request's sequence, layer upon layer (Deep Cross Attention); `heads` of them, or without that axis. */
export function deepCrossAttention(
  length: number,
  width: number,
  layers: number,
  heads?: number,
  fixedLength = false,
): Model {
  const b = new GraphBuilder();
  const each = heads === undefined ? width : width / heads;
  let sequence = b.input('history', fixedLength ? length : 'T', width);
  const user = b.input('user', width);
  let query = b.node('Gemm', [b.input('item', width), b.weights([width, width]), b.weights([width])]);
  for (let layer = 0; layer < layers; layer += 1) {
    sequence = b.node('Relu', [b.node('MatMul', [sequence, b.weights([width, width])])]);
    const [keys, values] = [0, 1].map(() =>
      split(b, b.node('MatMul', [sequence, b.weights([width, width])]), heads, each),
    );
    const q =
      heads === undefined
        ? b.node('Unsqueeze', [query, b.numbers(1)])
        : b.node('Reshape', [query, b.numbers(0, heads, 1, each)]);
    const turned = b.node(
      'Transpose',
      [keys ?? ''],
      [intsAttribute('perm', heads === undefined ? [0, 2, 1] : [0, 1, 3, 2])],
    );
    const weights = b.node(
      'Softmax',
      [b.node('MatMul', [q, turned], [], `attention_${layer}`)],
      [intAttribute('axis', -1)],
    );
    const pooled = b.node('MatMul', [weights, values ?? '']);
    const flat =
      heads === undefined
        ? b.node('Squeeze', [pooled, b.numbers(1)])
        : b.node('Reshape', [pooled, b.numbers(0, width)]);
    const mixed = b.node('Concat', [user, flat, query], [intAttribute('axis', 1)]);
    query = b.node('Relu', [b.node('Gemm', [mixed, b.weights([3 * width, width]), b.weights([width])])]);
  }
  const head = b.node('Gemm', [query, b.weights([width, 1]), b.weights([1])]);
  return {
    graph: b.build({ from: b.node('Squeeze', [head, b.numbers(1)]), shape: [] }),
    groups: [['history', 'user'], ['item']],
  };
}

function split(b: GraphBuilder, x: string, heads: number | undefined, each: number): string {
  if (heads === undefined) return x;
  const apart = b.node('Reshape', [x, b.numbers(0, -1, heads, each)]);
  return b.node('Transpose', [apart], [intsAttribute('perm', [0, 2, 1, 3])]);
}

/** Fields of both sides stacked, and compressed to fewer by a layer over the stack, in which the request's outputs see the request's fields only. */
export function linearCompression(userFields: number, itemFields: number, width: number): Model {
  const b = new GraphBuilder();
  const user = b.node('Reshape', [b.input('user', userFields * width), b.numbers(0, userFields, width)]);
  const item = b.node('Reshape', [b.input('item', itemFields * width), b.numbers(0, itemFields, width)]);
  const stacked = b.node('Concat', [user, item], [intAttribute('axis', 1)]);
  const isZero = (row: number, column: number) => row < 2 && column >= userFields;
  const compressed = b.node('Relu', [
    b.node('MatMul', [b.weights([4, userFields + itemFields], isZero), stacked]),
  ]);
  const features = b.node('MatMul', [compressed, b.weights([width, 3])]);
  const flat = b.node('Flatten', [features], [intAttribute('axis', 1)]);
  return { graph: b.build({ from: b.node('Gemm', [flat, b.weights([12, 2])]), shape: [2] }), groups: GROUPS };
}
