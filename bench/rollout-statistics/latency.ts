/** Latencies in ms: lognormal, and a tail of slow ones. */
const PARTS = [
  { share: 0.97, medianMs: 10, sigma: 0.4 },
  { share: 0.03, medianMs: 40, sigma: 0.6 },
];

/** Chance that a request whose latency is multiplied by `factor` takes longer than `ms`. */
export function chanceOver(ms: number, factor: number): number {
  return PARTS.reduce(
    (sum, { share, medianMs, sigma }) => sum + share * upperTail(Math.log(ms / (medianMs * factor)) / sigma),
    0,
  );
}

/** The latency that `share` of the requests exceed, where requests have these factors. */
export function latencyExceededBy(
  share: number,
  kinds: readonly { share: number; latency: number }[],
): number {
  let low = 0.01;
  let high = 1e6;
  for (let step = 0; step < 100; step++) {
    const middle = Math.sqrt(low * high);
    const over = kinds.reduce((sum, kind) => sum + kind.share * chanceOver(middle, kind.latency), 0);
    if (over > share) low = middle;
    else high = middle;
  }
  return low;
}

/** P(Z > z). Source: Abramowitz & Stegun 26.2.17, error below 7.5e-8. */
export function upperTail(z: number): number {
  if (z < 0) return 1 - upperTail(-z);
  const t = 1 / (1 + 0.2316419 * z);
  const series =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * series;
}
