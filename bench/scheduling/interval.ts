export interface Interval {
  readonly mean: number;
  /** Half of the 95 % interval. */
  readonly half: number;
}

/** Student's t at 97.5 %, by degrees of freedom; past the last, that of the last. */
const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045,
] as const;

export function interval95(figures: readonly number[]): Interval {
  const mean = figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
  if (figures.length < 2) return { mean, half: Number.POSITIVE_INFINITY };
  const variance = figures.reduce((sum, figure) => sum + (figure - mean) ** 2, 0) / (figures.length - 1);
  const t = T_975[Math.min(figures.length - 2, T_975.length - 1)] ?? Number.NaN;
  return { mean, half: t * Math.sqrt(variance / figures.length) };
}
