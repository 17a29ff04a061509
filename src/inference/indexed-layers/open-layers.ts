import { MillraceError } from '../../core/errors.ts';
import { readGraph } from '../onnx-file/read-graph.ts';
import { IndexedLayers } from './indexed-layers.ts';
import { isSmallBatch, type LayerWork, workOf } from './layer-plan.ts';
import { type InputRows, planLayers } from './plan-layers.ts';

export type OpenedLayers =
  | { kind: 'opened'; layers: IndexedLayers; work: LayerWork }
  /** With the node's name where a node stands against it. */
  | { kind: 'refused'; why: string };

/** The weights of a model with small batches are less. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Makes of a model's file its layers in WebAssembly, where it has nothing else and a batch of one candidate is small for them. */
export function openLayers(file: Uint8Array, inputRows: InputRows): OpenedLayers {
  if (file.length > FILE_BYTES_MAX) return { kind: 'refused', why: 'no batch of it is small' };
  try {
    const planned = planLayers(readGraph(file), inputRows);
    if (planned.kind === 'refused') return planned;
    const work = workOf(planned.plan);
    if (!isSmallBatch(work, 1, 1)) return { kind: 'refused', why: 'no batch of it is small' };
    return { kind: 'opened', layers: new IndexedLayers(planned.plan), work };
  } catch (error) {
    if (error instanceof MillraceError) return { kind: 'refused', why: error.message };
    throw error;
  }
}
