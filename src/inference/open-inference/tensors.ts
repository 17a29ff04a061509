import { ELEMENT_BYTES } from '../../core/request/tensor.ts';
import type { GraphCall, SlabTensor } from '../graph-call.ts';
import { AnswerError } from './failures.ts';

/**
 * How numbers travel. As bytes: after the JSON (the binary tensor data extension), over gRPC as raw contents. As numbers: in JSON, over gRPC as
 * typed contents.
 */
export type TensorForm = 'bytes' | 'numbers';

export interface SentTensor {
  name: string;
  shape: number[];
  datatype: SlabTensor['datatype'];
  contents: Uint8Array<ArrayBuffer>;
}

/**
 * Some servers take no tensor without elements (PyTriton). The one axis that can be empty where there are candidates is that of a sequence, and
 * a row of zeros that its length does not count is what shorter sequences of a batch are filled up with anyway.
 */
export function sentTensor(slab: ArrayBuffer, { name, datatype, offset, dims }: SlabTensor): SentTensor {
  const shape = dims.map((size) => Math.max(1, size));
  const bytes = elementsOf(shape) * ELEMENT_BYTES[datatype];
  const contents = dims.includes(0) ? new Uint8Array(bytes) : new Uint8Array(slab, offset, bytes);
  return { name, shape, datatype, contents };
}

export function floatsIn({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): Float32Array {
  return new Float32Array(buffer, byteOffset, byteLength / ELEMENT_BYTES.FP32);
}

export function integersIn({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): BigInt64Array {
  return new BigInt64Array(buffer, byteOffset, byteLength / ELEMENT_BYTES.INT64);
}

/** As a server says what an output is. */
export interface AnsweredTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
}

/**
 * Writes what a server answered to where a call wants its outputs.
 * @param valuesOf called in the order of the answer, for every output in it that is wanted
 * @throws AnswerError where an output is missing, or of another type, shape or size
 */
export function placeOutputs<T extends AnsweredTensor>(
  answered: readonly T[],
  { slab, outputs }: Pick<GraphCall, 'slab' | 'outputs'>,
  valuesOf: (tensor: T, position: number) => Float32Array,
): void {
  const places = new Map(outputs.map((tensor) => [tensor.name, tensor]));
  answered.forEach((tensor, position) => {
    const place = places.get(tensor.name);
    if (place === undefined) return;
    places.delete(tensor.name);
    checkShape(tensor, place);
    const values = valuesOf(tensor, position);
    if (values.length !== elementsOf(place.dims))
      throw new AnswerError(`${tensor.name} has ${values.length} values, not ${elementsOf(place.dims)}`);
    new Float32Array(slab, place.offset, values.length).set(values);
  });
  if (places.size > 0) throw new AnswerError(`the answer lacks ${[...places.keys()].join(', ')}`);
}

/** [N], or [N, 1] as some servers have it. */
function checkShape({ name, datatype, shape }: AnsweredTensor, place: SlabTensor): void {
  if (datatype !== 'FP32') throw new AnswerError(`${name} is ${datatype}, not FP32`);
  const count = elementsOf(place.dims);
  const isColumn = shape[0] === count && shape.slice(1).every((size) => size === 1);
  if (!isColumn) throw new AnswerError(`${name} has shape [${shape.join(', ')}], not [${count}]`);
}

export function floatsOfBytes({ name }: AnsweredTensor, contents: Uint8Array): Float32Array {
  if (contents.length % ELEMENT_BYTES.FP32 !== 0)
    throw new AnswerError(`${name} has ${contents.length} bytes: no whole numbers`);
  // A copy: their offset in the message need not be a multiple of four.
  return new Float32Array(new Uint8Array(contents).buffer);
}

function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
