/** How many times as fast the sparse kernel was as the dense one, at a share of zeros. */
export interface Compared {
  zeroShare: number;
  ratio: number;
}

/**
 * From which share of zeros on the sparse kernel is the faster one. Between two measured shares its time, against that of the dense one, falls on a
 * straight line: it multiplies what is not zero.
 * @param compared by rising share
 * @returns 1 where it never is
 */
export function crossover(compared: readonly Compared[]): number {
  const last = compared.findLastIndex(({ ratio }) => ratio < 1);
  const [below, above] = [compared[last], compared[last + 1]];
  if (below === undefined) return compared[0]?.zeroShare ?? 1;
  if (above === undefined) return 1;
  const part = (above.ratio * (1 - below.ratio)) / (above.ratio - below.ratio);
  return below.zeroShare + part * (above.zeroShare - below.zeroShare);
}
