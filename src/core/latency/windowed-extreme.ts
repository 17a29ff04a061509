/** The smallest or greatest sample of the last one to two windows; undefined where there was none. */
export class WindowedExtreme {
  readonly #pick: (a: number, b: number) => number;
  readonly #windowMs: number;
  #startMs: number;
  #current: number | undefined;
  #previous: number | undefined;

  /** @param pick `Math.min` or `Math.max` */
  constructor(pick: (a: number, b: number) => number, windowMs: number, nowMs: number) {
    this.#pick = pick;
    this.#windowMs = windowMs;
    this.#startMs = nowMs;
  }

  add(sample: number, nowMs: number): void {
    const elapsed = nowMs - this.#startMs;
    if (elapsed >= this.#windowMs) {
      this.#previous = elapsed < 2 * this.#windowMs ? this.#current : undefined;
      this.#current = undefined;
      this.#startMs = nowMs;
    }
    this.#current = this.#current === undefined ? sample : this.#pick(this.#current, sample);
  }

  value(): number | undefined {
    if (this.#current === undefined || this.#previous === undefined) return this.#current ?? this.#previous;
    return this.#pick(this.#current, this.#previous);
  }
}
