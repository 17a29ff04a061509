import { MillraceError } from '../../core/errors.ts';
import type { OnnxGraph } from '../onnx-file/graph.ts';
import { readGraph } from '../onnx-file/read-graph.ts';
import { writeGraph } from '../onnx-file/write-graph.ts';
import { cutProducts } from './cut-products.ts';
import { FirstLayer } from './first-layer.ts';

export type BehindProducts =
  | { kind: 'opened'; firstLayer: FirstLayer; rest: Uint8Array }
  /** With the node's name where a node stands against it. */
  | { kind: 'refused'; why: string };

/** Makes of a model's file the kernels of its first layer, and the file of what comes behind them. */
export function openBehindProducts(file: Uint8Array, inputs: readonly string[]): BehindProducts {
  const graph = readOrWhyNot(file);
  if (typeof graph === 'string') return { kind: 'refused', why: graph };
  const cut = cutProducts(graph, inputs);
  if (cut.kind === 'refused') return cut;
  return { kind: 'opened', firstLayer: new FirstLayer(cut.products), rest: writeGraph(cut.rest) };
}

function readOrWhyNot(file: Uint8Array): OnnxGraph | string {
  try {
    return readGraph(file);
  } catch (error) {
    if (error instanceof MillraceError) return error.message;
    throw error;
  }
}
