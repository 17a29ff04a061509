import { lnDensity, type PricedWork, type WorkPart } from './priced-work.ts';

/**
 * What is paid for first in an overload. `strict`: all base work, by priority and within it by density, then enhanced requests, then extras.
 * `one-price`: base work and extras compete by density alone.
 */
export type OverloadOrder = 'strict' | 'one-price';

/** A place in the order: the tier (0 first), then ln density, the greater first. */
export interface Rank {
  tier: number;
  lnDensity: number;
}

/** Where the order is cut: what ranks below is not paid for. */
export type Cut = Rank;

/** Priorities 0 to 9, then enhanced requests, then extras. */
const ENHANCED_TIER = 10;
const EXTRAS_TIER = 11;

export const NO_CUT: Cut = { tier: Number.POSITIVE_INFINITY, lnDensity: Number.NEGATIVE_INFINITY };

export function tiersOf(order: OverloadOrder): number {
  return order === 'strict' ? EXTRAS_TIER + 1 : 1;
}

export function baseRank(order: OverloadOrder, work: PricedWork): Rank {
  return { tier: baseTier(order, work), lnDensity: lnDensity(work.base) };
}

export function extraRank(order: OverloadOrder, extra: WorkPart): Rank {
  return { tier: order === 'strict' ? EXTRAS_TIER : 0, lnDensity: lnDensity(extra) };
}

function baseTier(order: OverloadOrder, { isEnhanced, priority }: PricedWork): number {
  if (order === 'one-price') return 0;
  return isEnhanced ? ENHANCED_TIER : Math.min(9, Math.max(0, priority));
}

/** Whether the rank is at or above the cut. */
export function isAbove(rank: Rank, cut: Cut): boolean {
  return rank.tier < cut.tier || (rank.tier === cut.tier && rank.lnDensity >= cut.lnDensity);
}

/** The same cut at a share of its density. */
export function atShare(cut: Cut, share: number): Cut {
  return { tier: cut.tier, lnDensity: cut.lnDensity + Math.log(share) };
}
