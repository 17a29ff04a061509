/** What a query of the policy's guardrails had to say: the range of its series, or why it said nothing. Survives JSON. */
export type MetricReading =
  | { readonly series: number; readonly lowest: number; readonly highest: number }
  | { readonly failed: string };

/** @param values one per series; infinities are kept as the largest numbers that JSON has */
export function readingOf(values: readonly number[]): MetricReading {
  if (values.length === 0) return { failed: 'the query has no series now' };
  if (values.some(Number.isNaN)) return { failed: 'the query is NaN' };
  const bounded = (value: number): number => Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
  return {
    series: values.length,
    lowest: bounded(Math.min(...values)),
    highest: bounded(Math.max(...values)),
  };
}
