/** Of optional work: how much survives while no baseline work is shed. */
const SHARE = 0.05;

/**
 * A little of the optional work that the cut would take is let through, so that the loops which learn from it stay sighted. It is dealt by what
 * was offered and not by density, so that what they see is a fair sample.
 */
export class OptionalAllowance {
  readonly #burstMs: number;
  #allowedMs = 0;

  /** @param burstMs unused allowance is kept up to here */
  constructor(burstMs: number) {
    this.#burstMs = burstMs;
  }

  offered(costMs: number): void {
    this.#allowedMs = Math.min(this.#burstMs, this.#allowedMs + SHARE * costMs);
  }

  /** Whether this much survives the cut; it is used up then. */
  take(costMs: number): boolean {
    if (costMs > this.#allowedMs) return false;
    this.#allowedMs -= costMs;
    return true;
  }
}
