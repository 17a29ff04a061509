import { ELEMENT_BYTES, elementCount } from '../core/request/tensor.ts';
import type { SlabTensor } from './graph-call.ts';

/** A tensor and the memory that its offset is into. */
export interface PlacedTensor {
  slab: ArrayBuffer;
  tensor: SlabTensor;
}

/**
 * The tensor, or zeros of one row in place of one that has no elements: some that compute take none (PyTriton refuses it, ONNX Runtime's WebGPU
 * provider ends the process). The one axis that can be empty where there are candidates is that of a sequence, and a row of zeros that its length
 * does not count is what shorter sequences of a batch are filled up with anyway.
 */
export function padEmpty(slab: ArrayBuffer, tensor: SlabTensor): PlacedTensor {
  if (!tensor.dims.includes(0)) return { slab, tensor };
  const dims = tensor.dims.map((size) => Math.max(1, size));
  const zeros = new ArrayBuffer(elementCount(dims) * ELEMENT_BYTES[tensor.datatype]);
  return { slab: zeros, tensor: { ...tensor, offset: 0, dims } };
}
