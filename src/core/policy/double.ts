const bits = new DataView(new ArrayBuffer(8));

/** The least double above x; NaN for infinity and NaN, which have none. */
export function nextAbove(x: number): number {
  if (Number.isNaN(x) || x === Number.POSITIVE_INFINITY) return Number.NaN;
  if (x === 0) return Number.MIN_VALUE;
  bits.setFloat64(0, x);
  const pattern = bits.getBigInt64(0);
  bits.setBigInt64(0, x > 0 ? pattern + 1n : pattern - 1n);
  return bits.getFloat64(0);
}

/** The greatest double below x; NaN for minus infinity and NaN, which have none. */
export function nextBelow(x: number): number {
  return -nextAbove(-x);
}
