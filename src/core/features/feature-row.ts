/** The values of one feature as a store has them; `null` where it has none, `no-number` where they are of another type. */
export type StoredFeature = readonly number[] | null | 'no-number';

/**
 * Writes the values of a row one feature after another, as FP32.
 * @param row of the row's width; zeros where the row is not found
 */
export function fillRow(
  row: Float32Array,
  features: readonly StoredFeature[],
): 'found' | 'missing' | 'invalid' {
  const state = write(row, features);
  if (state !== 'found') row.fill(0);
  return state;
}

function write(row: Float32Array, features: readonly StoredFeature[]): 'found' | 'missing' | 'invalid' {
  if (features.includes(null)) return 'missing';
  let at = 0;
  for (const values of features) {
    if (values === null || values === 'no-number' || at + values.length > row.length) return 'invalid';
    for (const value of values) {
      row[at] = value;
      // What FP32 does not hold is an infinity there.
      if (!Number.isFinite(row[at])) return 'invalid';
      at += 1;
    }
  }
  return at === row.length ? 'found' : 'invalid';
}

/** @param eventMs when the row was so, on the wall clock; undefined where it does not say */
export function isStale(eventMs: number | undefined, nowMs: number, maxAgeMs: number | undefined): boolean {
  return maxAgeMs !== undefined && (eventMs === undefined || nowMs - eventMs > maxAgeMs);
}
