const ACCURACY = 0.001;
const GAMMA = (1 + ACCURACY) / (1 - ACCURACY);
const LEAST_MS = 1e-3;
const MOST_MS = 1e7;
const BINS = Math.ceil(Math.log(MOST_MS / LEAST_MS) / Math.log(GAMMA)) + 2;

/**
 * Counts of latencies in bins whose width grows with them: quantiles within 0.1 %, from a microsecond to some hours, in 92 KB however many there
 * are (the mapping of DDSketch: Masson, Rim, Lee, VLDB 2019). The mean and the greatest are exact.
 */
export class LatencyBins {
  readonly #counts = new Float64Array(BINS);
  #count = 0;
  #sumMs = 0;
  #maxMs = 0;

  add(ms: number): void {
    const bin = ms <= LEAST_MS ? 0 : Math.ceil(Math.log(ms / LEAST_MS) / Math.log(GAMMA));
    const place = bin < BINS ? bin : BINS - 1;
    this.#counts[place] = (this.#counts[place] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += ms;
    if (ms > this.#maxMs) this.#maxMs = ms;
  }

  /** Takes the counts of others in. */
  merge(other: LatencyBins): void {
    for (let bin = 0; bin < BINS; bin++)
      this.#counts[bin] = (this.#counts[bin] ?? 0) + (other.#counts[bin] ?? 0);
    this.#count += other.#count;
    this.#sumMs += other.#sumMs;
    this.#maxMs = Math.max(this.#maxMs, other.#maxMs);
  }

  get count(): number {
    return this.#count;
  }

  get meanMs(): number {
    return this.#count === 0 ? 0 : this.#sumMs / this.#count;
  }

  get maxMs(): number {
    return this.#maxMs;
  }

  /** The q-quantile in ms; 0 where nothing was counted. */
  quantileMs(q: number): number {
    if (this.#count === 0) return 0;
    const rank = q * (this.#count - 1);
    let below = 0;
    for (let bin = 0; bin < BINS; bin++) {
      below += this.#counts[bin] ?? 0;
      if (below > rank) return bin === 0 ? LEAST_MS : (LEAST_MS * 2 * GAMMA ** bin) / (1 + GAMMA);
    }
    return this.#maxMs;
  }
}
