import type { Dim, OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { intAttribute } from '../../../../src/inference/onnx-file/write-graph.ts';
import { GraphBuilder } from '../rocs/graph-builder.ts';

const [USER, ITEM, HIDDEN] = [6, 4, 5];

/** How an exporter may have written down the input of the request. */
export type RequestForm = 'each' | 'one' | 'none' | 'batch';

const SHAPES: Readonly<Record<RequestForm, readonly Dim[]>> = {
  each: ['N', USER],
  one: [1, USER],
  none: [USER],
  batch: ['batch', USER],
};

/** A sum of two layers, which broadcasts a single row of the request to all candidates, and a sigmoid. */
export function sumOfLayers(form: RequestForm): OnnxGraph {
  const b = new GraphBuilder();
  const user = b.node('MatMul', [b.input('user', USER), b.weights([USER, HIDDEN])]);
  const item = b.node('MatMul', [b.input('item', ITEM), b.weights([ITEM, HIDDEN])]);
  const hidden = b.node('Relu', [b.node('Add', [user, item])]);
  const head = b.node('Sigmoid', [b.node('MatMul', [hidden, b.weights([HIDDEN, 1])])]);
  return withShapes(b.build({ from: head, shape: [1] }), { user: SHAPES[form] });
}

/** The request's row expanded to as many as there are candidates, and put beside each. */
export function expanded(form: 'one' | 'none' | 'batch'): OnnxGraph {
  const b = new GraphBuilder();
  const [given, item] = [b.input('user', USER), b.input('item', ITEM)];
  const user = form === 'none' ? b.node('Unsqueeze', [given, b.numbers(0)]) : given;
  const count = b.node('Slice', [b.node('Shape', [item]), b.numbers(0), b.numbers(1)]);
  const shape = b.node('Concat', [count, b.numbers(USER)], [intAttribute('axis', 0)]);
  const both = b.node('Concat', [b.node('Expand', [user, shape]), item], [intAttribute('axis', 1)]);
  const hidden = b.node('Relu', [
    b.node('Gemm', [both, b.weights([USER + ITEM, HIDDEN]), b.weights([HIDDEN])]),
  ]);
  const head = b.node('MatMul', [hidden, b.weights([HIDDEN, 1])]);
  return withShapes(b.build({ from: head, shape: [1] }), { user: SHAPES[form] });
}

/** Rows of a history are summed (those within its length, or all that there are) or averaged, beside ids that pick rows of a table. */
export function pooledHistory({ masked = true, mean = false } = {}): OnnxGraph {
  const b = new GraphBuilder();
  const [history, length] = [b.input('history', 'T', ITEM), b.integers('history_length')];
  const segment = b.node('Gather', [b.weights([3, ITEM]), b.integers('segment')]);
  const size = b.node('Squeeze', [b.node('Slice', [b.node('Shape', [history]), b.numbers(1), b.numbers(2)])]);
  const rows = b.node('Range', [scalar(b, 0), size, scalar(b, 1)]);
  const isOwn = b.node('Less', [
    b.node('Unsqueeze', [rows, b.numbers(0)]),
    b.node('Unsqueeze', [length, b.numbers(1)]),
  ]);
  const own = b.node('Unsqueeze', [b.node('Cast', [isOwn], [intAttribute('to', 1)]), b.numbers(2)]);
  const kept = masked ? b.node('Mul', [history, own]) : history;
  const pooled = b.node('ReduceSum', [kept, b.numbers(1)], [intAttribute('keepdims', 0)]);
  const count = b.node('Unsqueeze', [b.node('Cast', [length], [intAttribute('to', 1)]), b.numbers(1)]);
  const request = b.node('Add', [mean ? b.node('Div', [pooled, count]) : pooled, segment]);
  const products = b.node('Mul', [request, b.input('item', ITEM)]);
  const score = b.node('ReduceSum', [products, b.numbers(1)], [intAttribute('keepdims', 0)]);
  // The length counts even where the mask is left out, so that the graph reads it.
  const counted = b.node('Add', [score, b.node('Cast', [length], [intAttribute('to', 1)])]);
  return b.build({ from: counted, shape: [] });
}

/** Candidates less the mean of all that are in the call: each changes the others' scores. */
export function lessTheMean(): OnnxGraph {
  const b = new GraphBuilder();
  const [user, item] = [b.input('user', ITEM), b.input('item', ITEM)];
  const mean = b.node('ReduceMean', [item, b.numbers(0)], [intAttribute('keepdims', 1)]);
  const products = b.node('Mul', [user, b.node('Sub', [item, mean])]);
  return b.build({
    from: b.node('ReduceSum', [products, b.numbers(1)], [intAttribute('keepdims', 0)]),
    shape: [],
  });
}

function scalar(b: GraphBuilder, value: number): string {
  return b.node('Squeeze', [b.numbers(value)]);
}

/** The graph whose inputs are written down with these shapes. */
export function withShapes(
  graph: OnnxGraph,
  shapes: Readonly<Record<string, readonly Dim[] | undefined>>,
): OnnxGraph {
  return {
    ...graph,
    inputs: graph.inputs.map((input) =>
      Object.hasOwn(shapes, input.name) ? { ...input, shape: shapes[input.name] } : input,
    ),
  };
}
