import { rounded } from './rounded.ts';
import type { LatencySummary } from './simulation-report.ts';

/** Fewer samples beyond a percentile say nothing about it. */
const BEYOND_MIN = 10;
const CAPACITY_FIRST = 1_024;

/** Every latency of a run, 8 bytes each: two runs may differ by less than what a sketch tells apart. */
export class LatencySamples {
  #samples = new Float64Array(CAPACITY_FIRST);
  #count = 0;

  add(ms: number): void {
    if (this.#count === this.#samples.length) {
      const grown = new Float64Array(2 * this.#count);
      grown.set(this.#samples);
      this.#samples = grown;
    }
    this.#samples[this.#count] = ms;
    this.#count += 1;
  }

  /** By nearest rank: the smallest sample that at least the share of them does not exceed. */
  summary(): LatencySummary {
    const sorted = this.#samples.slice(0, this.#count).sort();
    const count = sorted.length;
    const at = (q: number): number | null => {
      const sample = sorted[Math.max(0, Math.ceil(q * count) - 1)];
      return sample === undefined || count - Math.ceil(q * count) < BEYOND_MIN ? null : rounded(sample);
    };
    const longest = sorted.at(-1);
    return {
      samples: count,
      p50Ms: at(0.5),
      p90Ms: at(0.9),
      p99Ms: at(0.99),
      p999Ms: at(0.999),
      maxMs: longest === undefined ? null : rounded(longest),
    };
  }
}
