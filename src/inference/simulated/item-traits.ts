import { bytesOfRows } from '../candidate-rows.ts';
import type { CheckedItem } from '../check-item.ts';
import type { InputLayout } from '../input-layout.ts';

/** FNV-1a, 32 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const NONE = new Uint8Array(0);

export type StandIns = 'from-bytes' | 'alike';

/** Stand-ins that say nothing at all. @returns FP32 [count] */
export function equalScores(count: number): Float32Array {
  return new Float32Array(count).fill(0.5);
}

/**
 * Stand-ins for scores where no model runs: for each candidate a number in (0, 1) that depends on the bytes of its rows and the head
 * alone, so equal candidates get equal scores on every worker. @returns FP32 [count]
 */
export function pseudoScores(layout: InputLayout, item: CheckedItem, head: string): Float32Array {
  const start = fold(FNV_START, Buffer.from(head, 'utf8'));
  const inputs = layout.candidate.map((input, position) =>
    bytesOfRows(item.candidate[position] ?? NONE, input),
  );
  return Float32Array.from({ length: item.count }, (_, candidate) => {
    let hash = start;
    layout.candidate.forEach(({ rowBytes }, position) => {
      const row = inputs[position]?.subarray(candidate * rowBytes, (candidate + 1) * rowBytes);
      if (row !== undefined) hash = fold(hash, row);
    });
    return (avalanche(hash) + 0.5) / 2 ** 32;
  });
}

function fold(hash: number, bytes: Uint8Array): number {
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash;
}

/** murmur3's finaliser: FNV alone leaves the high bits of short keys alike. */
function avalanche(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Share of non-zero elements of the FP32 request inputs, 0 … 1; 1 where there are none. */
export function requestDensity(layout: InputLayout, items: readonly CheckedItem[]): number {
  let elements = 0;
  let nonZero = 0;
  for (const item of items) {
    layout.request.forEach(({ datatype }, position) => {
      const contents = item.request[position];
      if (datatype !== 'FP32' || contents === undefined) return;
      for (let at = 0; at < contents.length; at += 4) {
        elements += 1;
        // −0 counts as zero: its only bit set is the sign.
        const rest =
          (contents[at] ?? 0) |
          (contents[at + 1] ?? 0) |
          (contents[at + 2] ?? 0) |
          ((contents[at + 3] ?? 0) & 0x7f);
        if (rest !== 0) nonZero += 1;
      }
    });
  }
  return elements === 0 ? 1 : nonZero / elements;
}
