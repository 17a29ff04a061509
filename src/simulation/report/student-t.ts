/** Quantiles of Student's t at 0.975, for 1 … 30 degrees of freedom (NIST/SEMATECH e-Handbook, table 1.3.6.7.2). */
const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const;
const Z_975 = 1.959964;

/** Half a two-sided 95 % interval in standard errors; beyond the table the first terms of its expansion, right to three digits. */
export function studentT95(degrees: number): number {
  const tabled = T_975[degrees - 1];
  if (tabled !== undefined) return tabled;
  return Z_975 + (Z_975 ** 3 + Z_975) / (4 * degrees);
}
