import { MillraceError } from '../../core/errors.ts';
import type { OnnxConstant } from './graph.ts';
import { type TensorProto, TensorProto_DataLocation, TensorProto_DataType } from './onnx-proto.ts';

const { FLOAT, DOUBLE, INT32, INT64, BOOL, UINT8, INT8 } = TensorProto_DataType;

const ELEMENT_BYTES: Readonly<Record<number, number>> = {
  [FLOAT]: 4,
  [DOUBLE]: 8,
  [INT32]: 4,
  [INT64]: 8,
  [BOOL]: 1,
  [UINT8]: 1,
  [INT8]: 1,
};

/** @throws MillraceError INVALID_MODEL where its values are elsewhere, are of a type not read here, or do not fill its dims */
export function readConstant(tensor: TensorProto): OnnxConstant {
  const { name, dataType: type } = tensor;
  if (tensor.dataLocation !== TensorProto_DataLocation.DEFAULT || tensor.externalData.length > 0) {
    throw new MillraceError('INVALID_MODEL', `the values of ${name} lie in another file`);
  }
  const elementBytes = ELEMENT_BYTES[type];
  if (elementBytes === undefined) {
    throw new MillraceError('INVALID_MODEL', `${name} is of a type that is not read here`, {
      value: type,
      allowed: Object.keys(ELEMENT_BYTES).join(', '),
    });
  }
  const dims = tensor.dims.map(Number);
  const bytes = rawBytes(tensor);
  const wanted = dims.reduce((product, size) => product * size, elementBytes);
  if (bytes.length !== wanted) {
    throw new MillraceError('INVALID_MODEL', `the values of ${name} do not fill its shape`, {
      value: `${bytes.length} bytes for [${dims.join(', ')}]`,
      allowed: `${wanted}`,
    });
  }
  return { type, dims, bytes };
}

/** Bytes of their own, so that they begin where numbers may. A file may hold its values as bytes, or as numbers of its type's field (small integers and booleans in that of int32). */
function rawBytes(tensor: TensorProto): Uint8Array {
  if (tensor.rawData.length > 0) return new Uint8Array(tensor.rawData);
  const { floatData, doubleData, int32Data, int64Data } = tensor;
  switch (tensor.dataType) {
    case FLOAT:
      return bytesOf(Float32Array.from(floatData));
    case DOUBLE:
      return bytesOf(Float64Array.from(doubleData));
    case INT32:
      return bytesOf(Int32Array.from(int32Data));
    case INT64:
      return bytesOf(BigInt64Array.from(int64Data));
    default:
      return Uint8Array.from(int32Data);
  }
}

function bytesOf(values: ArrayBufferView): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

export function float32(dims: readonly number[], values: Iterable<number>): OnnxConstant {
  return { type: FLOAT, dims, bytes: bytesOf(Float32Array.from(values)) };
}

export function int64(dims: readonly number[], values: Iterable<number | bigint>): OnnxConstant {
  return { type: INT64, dims, bytes: bytesOf(BigInt64Array.from(values, BigInt)) };
}

/** The values of an FP32 constant; `undefined` where it is of another type. */
export function floatsOf({ type, bytes }: OnnxConstant): Float32Array | undefined {
  if (type !== FLOAT) return undefined;
  return new Float32Array(aligned(bytes, 4));
}

/** The values of an integer constant; `undefined` where it is of another type. */
export function integersOf({ type, bytes }: OnnxConstant): number[] | undefined {
  if (type === INT64) return Array.from(new BigInt64Array(aligned(bytes, 8)), Number);
  if (type === INT32) return Array.from(new Int32Array(aligned(bytes, 4)));
  return undefined;
}

/** A copy, since a file's bytes begin anywhere. */
function aligned(bytes: Uint8Array, elementBytes: number): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.length - (bytes.length % elementBytes));
  new Uint8Array(copy).set(bytes.subarray(0, copy.byteLength));
  return copy;
}

/** The part [start, end) of a constant along one axis. */
export function sliceConstant(
  { type, dims, bytes }: OnnxConstant,
  axis: number,
  start: number,
  end: number,
): OnnxConstant {
  const elementBytes = ELEMENT_BYTES[type] ?? 1;
  const size = dims[axis] ?? 1;
  const inner = dims.slice(axis + 1).reduce((product, each) => product * each, elementBytes);
  const outer = dims.slice(0, axis).reduce((product, each) => product * each, 1);
  const kept = (end - start) * inner;
  const sliced = new Uint8Array(outer * kept);
  for (let at = 0; at < outer; at += 1) {
    const from = (at * size + start) * inner;
    sliced.set(bytes.subarray(from, from + kept), at * kept);
  }
  return { type, dims: dims.map((each, n) => (n === axis ? end - start : each)), bytes: sliced };
}
