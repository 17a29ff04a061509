import { LN_DENSITY_MAX } from './priced-work.ts';

const BIN_WIDTH = 0.1;
/** Beyond all densities there are, so that none is at the outer edge of a bin. */
const LN_MAX = LN_DENSITY_MAX + 1;
const BINS = 2 * Math.round(LN_MAX / BIN_WIDTH);
/** Weights grow with time; before they are too great for the sums to stay exact, all is scaled back. */
const WEIGHT_MAX = 2 ** 40;

/**
 * Cost that arrived lately, by ln density, each arrival weighing half as much after every half-life.
 * Weights are kept relative to a landmark that only moves now and then (forward decay: Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009),
 * so adding costs O(1) and nothing is touched as time passes.
 */
export class CostHistogram {
  readonly #halfLifeMs: number;
  readonly #bins = new Float64Array(BINS);
  #landmarkMs: number;
  /** Only bins from here to there ever held anything. */
  #lowest = BINS;
  #highest = -1;

  constructor(halfLifeMs: number, nowMs: number) {
    this.#halfLifeMs = halfLifeMs;
    this.#landmarkMs = nowMs;
  }

  add(lnDensity: number, costMs: number, nowMs: number): void {
    let weight = this.#weight(nowMs);
    if (weight > WEIGHT_MAX) {
      for (let bin = this.#lowest; bin <= this.#highest; bin += 1)
        this.#bins[bin] = (this.#bins[bin] ?? 0) / weight;
      this.#landmarkMs = nowMs;
      weight = 1;
    }
    const bin = binOf(lnDensity);
    this.#lowest = Math.min(this.#lowest, bin);
    this.#highest = Math.max(this.#highest, bin);
    this.#bins[bin] = (this.#bins[bin] ?? 0) + costMs * weight;
  }

  /** Decayed cost of all densities, ms. */
  massMs(nowMs: number): number {
    let sum = 0;
    for (let bin = this.#lowest; bin <= this.#highest; bin += 1) sum += this.#bins[bin] ?? 0;
    return sum / this.#weight(nowMs);
  }

  /**
   * From the densest down, the ln density where the cost reaches `capMs`, within a bin by its share; undefined where all of it fits.
   * What is at or above it costs at most `capMs`, if densities spread evenly inside a bin.
   */
  cutAt(capMs: number, nowMs: number): number | undefined {
    let left = Math.max(0, capMs) * this.#weight(nowMs);
    for (let bin = this.#highest; bin >= this.#lowest; bin -= 1) {
      const cost = this.#bins[bin] ?? 0;
      if (cost > left) return upperEdge(bin) - BIN_WIDTH * (left / cost);
      left -= cost;
    }
    return undefined;
  }

  #weight(nowMs: number): number {
    return 2 ** ((nowMs - this.#landmarkMs) / this.#halfLifeMs);
  }
}

function binOf(lnDensity: number): number {
  const bin = Math.floor((lnDensity + LN_MAX) / BIN_WIDTH);
  return Number.isNaN(bin) ? 0 : Math.min(BINS - 1, Math.max(0, bin));
}

function upperEdge(bin: number): number {
  return (bin + 1) * BIN_WIDTH - LN_MAX;
}
