import { skipFiniteBlocks } from './finite-blocks.ts';
import type { Datatype } from './tensor.ts';

/**
 * Index of the first NaN or infinite element of a tensor's little-endian contents; -1 where all are finite, and for
 * datatypes that have no such values.
 *
 * A value is not finite where all bits of its exponent are set (IEEE 754). Most values are told by the one byte that holds
 * the top of the exponent, so nothing needs to be aligned or copied: as fast as masking aligned 32-bit words. Large FP32 tensors are looked at by
 * whole blocks first.
 */
export function firstNonFinite(contents: Uint8Array, datatype: Datatype): number {
  switch (datatype) {
    case 'FP32':
      return scan(contents, 4, 0x7f, 0x80, skipOrdinaryFp32(contents, skipFiniteBlocks(contents)));
    case 'FP64':
      return scan(contents, 8, 0x7f, 0xf0, 0);
    case 'FP16':
      return scan(contents, 2, 0x7c, 0, 0);
    case 'INT64':
    case 'INT32':
    case 'INT8':
    case 'UINT8':
    case 'BOOL':
    case 'BYTES':
      return -1;
  }
}

/** Bytes up to where four-element blocks of values below 2^127 end, from a multiple of four elements on: the common datatype, four at a time. */
function skipOrdinaryFp32(contents: Uint8Array, from: number): number {
  let start = from;
  for (; start + 16 <= contents.length; start += 16) {
    if (((contents[start + 3] ?? 0) & 0x7f) === 0x7f) break;
    if (((contents[start + 7] ?? 0) & 0x7f) === 0x7f) break;
    if (((contents[start + 11] ?? 0) & 0x7f) === 0x7f) break;
    if (((contents[start + 15] ?? 0) & 0x7f) === 0x7f) break;
  }
  return start;
}

/** `topMask` and `nextMask`: bits of the exponent in the highest byte of an element and in the byte below it. */
function scan(
  contents: Uint8Array,
  elementBytes: number,
  topMask: number,
  nextMask: number,
  startByte: number,
): number {
  for (let top = startByte + elementBytes - 1; top < contents.length; top += elementBytes) {
    if (((contents[top] ?? 0) & topMask) !== topMask) continue;
    if (((contents[top - 1] ?? 0) & nextMask) === nextMask) return (top + 1) / elementBytes - 1;
  }
  return -1;
}
