import type { Generator } from '../../core/random/generator.ts';

/** What a model's times and amounts are drawn from; all are at least 0. */
export type Distribution =
  | { readonly kind: 'fixed'; readonly value: number }
  | { readonly kind: 'uniform'; readonly from: number; readonly to: number }
  | { readonly kind: 'exponential'; readonly mean: number }
  /** `sigma`: the standard deviation of the logarithm. */
  | { readonly kind: 'lognormal'; readonly mean: number; readonly sigma: number };

/** A distribution's draws, one a call. */
export type Draw = () => number;

/**
 * Draws from a stream of its own, so that another distribution elsewhere changes nothing here.
 * @throws RangeError where a parameter is no number or below 0
 */
export function drawsOf(distribution: Distribution, random: Generator): Draw {
  switch (distribution.kind) {
    case 'fixed': {
      const value = atLeastZero('value', distribution.value);
      return () => value;
    }
    case 'uniform': {
      const from = atLeastZero('from', distribution.from);
      const span = atLeastZero('to - from', distribution.to - from);
      return () => from + span * random.next();
    }
    case 'exponential': {
      const mean = atLeastZero('mean', distribution.mean);
      return () => drawExponential(random, mean);
    }
    case 'lognormal': {
      const sigma = atLeastZero('sigma', distribution.sigma);
      const scale = atLeastZero('mean', distribution.mean) * Math.exp(-(sigma ** 2) / 2);
      const normal = normalDraws(random);
      return () => scale * Math.exp(sigma * normal());
    }
  }
}

/** By inversion. */
export function drawExponential(random: Generator, mean: number): number {
  return -mean * Math.log(1 - random.next());
}

/** Standard normal draws, two from each pair of uniform ones (Box and Muller 1958). */
export function normalDraws(random: Generator): Draw {
  let kept = Number.NaN;
  return () => {
    if (!Number.isNaN(kept)) {
      const normal = kept;
      kept = Number.NaN;
      return normal;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
    const angle = 2 * Math.PI * random.next();
    kept = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/** The mean of a distribution's draws. */
export function meanOf(distribution: Distribution): number {
  switch (distribution.kind) {
    case 'fixed':
      return distribution.value;
    case 'uniform':
      return (distribution.from + distribution.to) / 2;
    case 'exponential':
    case 'lognormal':
      return distribution.mean;
  }
}

/** E[X²] / E[X]², which is what queueing formulas need beside the mean. */
export function secondMomentRatio(distribution: Distribution): number {
  switch (distribution.kind) {
    case 'fixed':
      return 1;
    case 'uniform': {
      const variance = (distribution.to - distribution.from) ** 2 / 12;
      return 1 + variance / meanOf(distribution) ** 2;
    }
    case 'exponential':
      return 2;
    case 'lognormal':
      return Math.exp(distribution.sigma ** 2);
  }
}

function atLeastZero(name: string, value: number): number {
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY))
    throw new RangeError(`${name} of a distribution is a number of at least 0, not ${value}`);
  return value;
}
