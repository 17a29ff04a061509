const Z = 1.959964;

/** A mean over seeds, and how far to each side its 95 % interval reaches (Student's t). */
export interface Interval {
  mean: number;
  halfWidth: number;
}

export function intervalOf(values: readonly number[]): Interval {
  const { length } = values;
  const mean = values.reduce((sum, value) => sum + value, 0) / length;
  if (length < 2) return { mean, halfWidth: Number.NaN };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (length - 1);
  return { mean, halfWidth: studentT(length - 1) * Math.sqrt(variance / length) };
}

/** The 97.5 % point, by its expansion in 1 / degrees of freedom (Abramowitz and Stegun 26.7.5); for 2 of them 3 % low, for 19 exact to four digits. */
function studentT(freedom: number): number {
  const first = (Z ** 3 + Z) / 4;
  const second = (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / 96;
  const third = (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / 384;
  return Z + first / freedom + second / freedom ** 2 + third / freedom ** 3;
}
