/** 32-bit hashes of item ids; part of the file format, so they never change within one. */

/** Of an INT64 id by its two halves: every bit of both reaches every bit of the hash (murmur3's multipliers and shifts). */
export function hashInt64(low: number, high: number): number {
  let hash = Math.imul(low ^ (low >>> 15), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ high, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x27d4eb2f);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** MurmurHash3 x86 32-bit with seed 0, of `bytes[start]` to `bytes[end - 1]`: https://github.com/aappleby/smhasher */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  const at = (index: number): number => bytes[index] ?? 0;
  let hash = 0;
  let next = start;
  for (; next + 4 <= end; next += 4) {
    const word = at(next) | (at(next + 1) << 8) | (at(next + 2) << 16) | (at(next + 3) << 24);
    hash ^= mix(word);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  if (next < end) {
    let tail = 0;
    for (let index = end - 1; index >= next; index -= 1) tail = (tail << 8) | at(index);
    hash ^= mix(tail);
  }
  hash ^= end - start;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mix(word: number): number {
  const scaled = Math.imul(word, 0xcc9e2d51);
  return Math.imul((scaled << 15) | (scaled >>> 17), 0x1b873593);
}
