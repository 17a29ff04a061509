/** The middle value; of an even number of values the lower one of the two in the middle. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** By nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
