/** A part of a request that is computed or left out as one. */
export interface WorkPart {
  /** Predicted service time on a server of speed 1, ms. */
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

/** ln of value per ms. Work without cost comes first, work without value last. */
export function lnDensity({ costMs, value }: WorkPart): number {
  if (!(value > 0)) return Number.NEGATIVE_INFINITY;
  if (!(costMs > 0)) return Number.POSITIVE_INFINITY;
  return Math.log(value / costMs);
}
