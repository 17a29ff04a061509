import type { OnnxGraph } from '../onnx-file/graph.ts';

/** They move numbers, and leave them as they are. */
const MOVES: ReadonlySet<string> = new Set([
  ...['Flatten', 'Gather', 'Identity', 'Reshape', 'Slice', 'Squeeze', 'Transpose', 'Unsqueeze'],
]);
/** Their results lie in [0, 1], or do where 1 / (1 + exp(-x)) is written out. */
const GIVES_SHARES: ReadonlySet<string> = new Set(['Sigmoid', 'Softmax', 'Reciprocal', 'Div']);

/** Whether a head looks like a probability: it comes out of an operator that makes them, and all values seen lie in [0, 1]. */
export function isProbability({ nodes }: OnnxGraph, output: string, values: Iterable<number>): boolean {
  const madeBy = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  let node = madeBy.get(output);
  while (node !== undefined && MOVES.has(node.op)) node = madeBy.get(node.inputs[0] ?? '');
  if (node === undefined || !GIVES_SHARES.has(node.op)) return false;
  for (const value of values) if (!(value >= 0 && value <= 1)) return false;
  return true;
}
