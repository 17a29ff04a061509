/** The smallest sample of the last one to two windows; undefined where there was none. */
export class WindowedMinimum {
  readonly #windowMs: number;
  #startMs: number;
  #current = Number.POSITIVE_INFINITY;
  #previous = Number.POSITIVE_INFINITY;

  constructor(windowMs: number, nowMs: number) {
    this.#windowMs = windowMs;
    this.#startMs = nowMs;
  }

  add(sample: number, nowMs: number): void {
    const elapsed = nowMs - this.#startMs;
    if (elapsed >= this.#windowMs) {
      this.#previous = elapsed < 2 * this.#windowMs ? this.#current : Number.POSITIVE_INFINITY;
      this.#current = Number.POSITIVE_INFINITY;
      this.#startMs = nowMs;
    }
    if (sample < this.#current) this.#current = sample;
  }

  value(): number | undefined {
    const least = Math.min(this.#current, this.#previous);
    return least === Number.POSITIVE_INFINITY ? undefined : least;
  }
}
