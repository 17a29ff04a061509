const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const DECIMAL = /^(?:0|-?[1-9]\d{0,18})$/;

/** Bytes of one id in UTF-8. */
export const ID_BYTES_MAX = 1_024;

/**
 * An id is the same whether it is written as a number or as its decimal text. @returns the number that the text is the one way to
 * write; undefined for `007`, `+1`, `1.0`, and what INT64 does not hold
 */
export function int64Of(text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}
