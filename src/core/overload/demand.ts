import { CostHistogram } from './cost-histogram.ts';
import { type Cut, NO_CUT, type Rank } from './overload-order.ts';

/** What was asked for lately, whether or not it was let in, in the order in which it is paid for. */
export class Demand {
  readonly #halfLifeMs: number;
  readonly #startMs: number;
  readonly #tiers: readonly CostHistogram[];

  constructor(tiers: number, halfLifeMs: number, nowMs: number) {
    this.#halfLifeMs = halfLifeMs;
    this.#startMs = nowMs;
    this.#tiers = Array.from({ length: tiers }, () => new CostHistogram(halfLifeMs, nowMs));
  }

  add({ tier, lnDensity }: Rank, costMs: number, nowMs: number): void {
    this.#tiers[tier]?.add(lnDensity, costMs, nowMs);
  }

  massMs(nowMs: number): number {
    return this.#tiers.reduce((sum, tier) => sum + tier.massMs(nowMs), 0);
  }

  /**
   * For how many ms the demand of now would have to arrive to weigh as much as the decayed sum: half-life / ln 2 once it has watched long
   * enough, and less before.
   */
  windowMs(nowMs: number): number {
    return (this.#halfLifeMs / Math.LN2) * (1 - 2 ** (-(nowMs - this.#startMs) / this.#halfLifeMs));
  }

  /** Where top-down cost reaches `capMs`. */
  cutAt(capMs: number, nowMs: number): Cut {
    let leftMs = capMs;
    for (const [tier, histogram] of this.#tiers.entries()) {
      const lnDensity = histogram.cutAt(leftMs, nowMs);
      if (lnDensity !== undefined) return { tier, lnDensity };
      leftMs -= histogram.massMs(nowMs);
    }
    return NO_CUT;
  }
}
