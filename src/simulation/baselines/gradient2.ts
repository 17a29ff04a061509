const INITIAL = 20;
const MIN = 20;
const MAX = 200;
const SMOOTHING = 0.2;
const QUEUE = 4;
const TOLERANCE = 1.5;
const LONG_WINDOW = 600;
const WARM_UP = 10;

/**
 * Netflix's Gradient2: a limit of requests at once, by how latencies of now compare with those of long. Netflix/concurrency-limits, Gradient2Limit, with its defaults:
 * g = clamp(tolerance × long / short, 0.5, 1), L = (1 − s) L + s (g L + queue); no growth while fewer than L / 2 are under way; long falls by a tenth where it is
 * above twice the short one.
 */
export class Gradient2 {
  #limit = INITIAL;
  #longMs = 0;
  #samples = 0;

  get limit(): number {
    return this.#limit;
  }

  completed(shortMs: number, inflight: number): void {
    this.#follow(shortMs);
    if (this.#longMs / shortMs > 2) this.#longMs *= 0.9;
    if (inflight < this.#limit / 2) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * this.#longMs) / shortMs));
    const wanted = gradient * this.#limit + QUEUE;
    this.#limit = Math.min(MAX, Math.max(MIN, (1 - SMOOTHING) * this.#limit + SMOOTHING * wanted));
  }

  /** A plain mean of the first samples, then an exponential one. */
  #follow(shortMs: number): void {
    this.#samples += 1;
    const weight = this.#samples <= WARM_UP ? 1 / this.#samples : 2 / (LONG_WINDOW + 1);
    this.#longMs += weight * (shortMs - this.#longMs);
  }
}
