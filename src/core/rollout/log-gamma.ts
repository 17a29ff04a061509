const HALF_LOG_TAU = 0.9189385332046728;

/** log Γ(x) for x > 0, within 1e-12 of its size. Source: Stirling's series, after Γ(x + 1) = x·Γ(x) has made x large enough for it. */
export function logGamma(x: number): number {
  let product = 1;
  while (x < 15) {
    product *= x;
    x += 1;
  }
  const inverse = 1 / x;
  const square = inverse * inverse;
  const series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)));
  return (x - 0.5) * Math.log(x) - x + HALF_LOG_TAU + series - Math.log(product);
}
