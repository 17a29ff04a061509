/** A part of a request that is computed or left out as one. */
export interface WorkPart {
  /** Predicted service time on a server of speed 1, ms: a number of at least 0, since one that is none would stay in every sum. */
  costMs: number;
  /** What answering it is worth, in any unit that is the same for all. */
  value: number;
}

/** One request as the overload rules see it. */
export interface PricedWork {
  /** On the worker's monotonic clock: when the budget runs out. */
  deadlineMs: number;
  /** 0 is highest, 9 lowest. */
  priority: number;
  /** It asks for the enhanced variant: refused here, it can still run as a baseline request elsewhere. */
  isEnhanced: boolean;
  /** The request side and the baseline candidates. */
  base: WorkPart;
  /**
   * Extra candidates on top, in the order of the earlier stage, in as many steps as they can be trimmed by.
   * A later step runs only where all before it do.
   */
  extras: readonly WorkPart[];
}

/** ln density is kept from -31 to 31: thirteen powers of ten to each side of one unit of value per ms. */
export const LN_DENSITY_MAX = 31;
/** What is worth nothing, or was given no value, counts as this: among itself, the cheapest first. */
const VALUE_MIN = 1e-9;

/** ln of value per ms, from `-LN_DENSITY_MAX` to `LN_DENSITY_MAX`. */
export function lnDensity({ costMs, value }: WorkPart): number {
  // A comparison with NaN is false: it counts as the least.
  const density = (value > VALUE_MIN ? value : VALUE_MIN) / costMs;
  return Math.min(LN_DENSITY_MAX, Math.max(-LN_DENSITY_MAX, Math.log(density)));
}
