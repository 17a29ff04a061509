/** Tensor datatypes of the Open Inference Protocol that millrace carries. */
export const DATATYPES = [
  'FP32',
  'FP64',
  'FP16',
  'INT64',
  'INT32',
  'INT8',
  'UINT8',
  'BOOL',
  'BYTES',
] as const;
export type Datatype = (typeof DATATYPES)[number];

/** Bytes of one element; 0 for BYTES, whose elements each carry a 4-byte little-endian length. */
export const ELEMENT_BYTES: Readonly<Record<Datatype, number>> = {
  FP32: 4,
  FP64: 8,
  FP16: 2,
  INT64: 8,
  INT32: 4,
  INT8: 1,
  UINT8: 1,
  BOOL: 1,
  BYTES: 0,
};

/** Elements of a tensor of this shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** A tensor of the Open Inference Protocol: little-endian, row-major, so the first n candidates are a prefix of its bytes. */
export interface Tensor {
  name: string;
  datatype: string;
  shape: number[];
  contents: Buffer;
}
