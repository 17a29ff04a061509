/**
 * Kafka's murmur2 (seed 0x9747b28c) over a key's bytes, as every stock client computes it.
 * Source: Apache Kafka, org.apache.kafka.common.utils.Utils#murmur2.
 */
export function murmur2(bytes: Uint8Array): number {
  const m = 0x5bd1e995;
  const length = bytes.length;
  let h = 0x9747b28c ^ length;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    let k =
      byteAt(bytes, i) |
      (byteAt(bytes, i + 1) << 8) |
      (byteAt(bytes, i + 2) << 16) |
      (byteAt(bytes, i + 3) << 24);
    k = Math.imul(k, m);
    k ^= k >>> 24;
    k = Math.imul(k, m);
    h = Math.imul(h, m) ^ k;
  }
  const rest = length - i;
  if (rest === 3) h ^= byteAt(bytes, i + 2) << 16;
  if (rest >= 2) h ^= byteAt(bytes, i + 1) << 8;
  if (rest >= 1) h = Math.imul(h ^ byteAt(bytes, i), m);
  h ^= h >>> 13;
  h = Math.imul(h, m);
  return h ^ (h >>> 15);
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}

/** The partition that a stock Kafka client gives a keyed record. */
export function partitionForKey(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}
