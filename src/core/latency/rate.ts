/**
 * Completions per millisecond over the recent past, from counts with their times.
 * Two buckets of `windowMs` each: the answer covers between one and two windows, costs O(1), and goes to 0 by itself.
 */
export class RecentRate {
  readonly #windowMs: number;
  #startMs: number;
  #current = 0;
  #previous = 0;

  constructor(windowMs: number, nowMs: number) {
    this.#windowMs = windowMs;
    this.#startMs = nowMs;
  }

  add(count: number, nowMs: number): void {
    this.#roll(nowMs);
    this.#current += count;
  }

  /** Events per millisecond. */
  perMs(nowMs: number): number {
    this.#roll(nowMs);
    return (this.#previous + this.#current) / (this.#windowMs + (nowMs - this.#startMs));
  }

  #roll(nowMs: number): void {
    const elapsed = nowMs - this.#startMs;
    if (elapsed < this.#windowMs) return;
    this.#previous = elapsed < 2 * this.#windowMs ? this.#current : 0;
    this.#current = 0;
    this.#startMs = nowMs - (elapsed % this.#windowMs);
  }
}
