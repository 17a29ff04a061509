import { ELEMENT_BYTES, elementCount } from '../../core/request/tensor.ts';
import type { GraphCall, SlabTensor } from '../graph-call.ts';
import { padEmpty } from '../padding.ts';
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

/** As servers take it: some of them none without elements. */
export function sentTensor(given: ArrayBuffer, tensor: SlabTensor): SentTensor {
  const { slab, tensor: padded } = padEmpty(given, tensor);
  const { name, datatype, offset, dims } = padded;
  const contents = new Uint8Array(slab, offset, elementCount(dims) * ELEMENT_BYTES[datatype]);
  return { name, shape: [...dims], datatype, contents };
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
    if (values.length !== elementCount(place.dims))
      throw new AnswerError(`${tensor.name} has ${values.length} values, not ${elementCount(place.dims)}`);
    new Float32Array(slab, place.offset, values.length).set(values);
  });
  if (places.size > 0) throw new AnswerError(`the answer lacks ${[...places.keys()].join(', ')}`);
}

/** [N], or [N, 1] as some servers have it. */
function checkShape({ name, datatype, shape }: AnsweredTensor, place: SlabTensor): void {
  if (datatype !== 'FP32') throw new AnswerError(`${name} is ${datatype}, not FP32`);
  const count = elementCount(place.dims);
  const isColumn = shape[0] === count && shape.slice(1).every((size) => size === 1);
  if (!isColumn) throw new AnswerError(`${name} has shape [${shape.join(', ')}], not [${count}]`);
}

export function floatsOfBytes({ name }: AnsweredTensor, contents: Uint8Array): Float32Array {
  if (contents.length % ELEMENT_BYTES.FP32 !== 0)
    throw new AnswerError(`${name} has ${contents.length} bytes: no whole numbers`);
  // A copy: their offset in the message need not be a multiple of four.
  return new Float32Array(new Uint8Array(contents).buffer);
}
