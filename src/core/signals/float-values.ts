import type { Datatype } from '../request/tensor.ts';

/** Datatypes whose values signals read; integers and bytes are ids or codes, which no norm or ratio means anything of. */
export type FloatDatatype = 'FP32' | 'FP64' | 'FP16';

export function isFloat(datatype: Datatype): datatype is FloatDatatype {
  return datatype === 'FP32' || datatype === 'FP64' || datatype === 'FP16';
}

/** Some elements of a tensor: `count` of them, `stride` apart, from element `first`. */
export interface ElementRange {
  readonly first: number;
  readonly stride: number;
  readonly count: number;
}

/** Copies elements of little-endian contents, wherever they lie in their buffer, to `out` from `at` on. */
export function readFloats(
  contents: Uint8Array,
  datatype: FloatDatatype,
  range: ElementRange,
  out: Float64Array,
  at: number,
): void {
  const view = new DataView(contents.buffer, contents.byteOffset, contents.byteLength);
  switch (datatype) {
    case 'FP32':
      readFp32(view, range, out, at);
      return;
    case 'FP64':
      readFp64(view, range, out, at);
      return;
    case 'FP16':
      readFp16(view, range, out, at);
      return;
  }
}

function readFp32(
  view: DataView,
  { first, stride, count }: ElementRange,
  out: Float64Array,
  at: number,
): void {
  let byte = 4 * first;
  for (let i = at; i < at + count; i++) {
    out[i] = view.getFloat32(byte, true);
    byte += 4 * stride;
  }
}

function readFp64(
  view: DataView,
  { first, stride, count }: ElementRange,
  out: Float64Array,
  at: number,
): void {
  let byte = 8 * first;
  for (let i = at; i < at + count; i++) {
    out[i] = view.getFloat64(byte, true);
    byte += 8 * stride;
  }
}

function readFp16(
  view: DataView,
  { first, stride, count }: ElementRange,
  out: Float64Array,
  at: number,
): void {
  let byte = 2 * first;
  for (let i = at; i < at + count; i++) {
    out[i] = fromHalf(view.getUint16(byte, true));
    byte += 2 * stride;
  }
}

/** IEEE 754 binary16 bits as a number; by hand, because DataView#getFloat16 is younger than the oldest Node that runs this. */
function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
