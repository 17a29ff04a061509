/** A seed for the sample of a request's candidate side: FNV-1a over the UTF-16 units of its id, as an unsigned 32-bit number. */
export function sampleSeed(requestId: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < requestId.length; i++) h = Math.imul(h ^ requestId.charCodeAt(i), 0x01000193);
  return (h ^ (h >>> 15)) >>> 0;
}

/**
 * Distance between sampled values so that at most `valuesMax` of `values` are taken. It shares no divisor with the row length:
 * otherwise the sample would see only some of the columns.
 */
export function sampleStride(values: number, rowValues: number, valuesMax: number): number {
  let stride = Math.max(1, Math.ceil(values / Math.max(1, valuesMax)));
  while (greatestCommonDivisor(stride, rowValues) > 1) stride += 1;
  return stride;
}

function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
