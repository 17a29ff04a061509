import type { Generator } from '../../core/random/generator.ts';

/** Draws a place with a chance in proportion to its weight, without those of weight 0. */
export function weightedPlace(weights: readonly number[], random: Generator): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let left = random.next() * total;
  let last = 0;
  for (const [place, weight] of weights.entries()) {
    if (weight <= 0) continue;
    last = place;
    left -= weight;
    if (left < 0) return place;
  }
  return last;
}

/** The place of the least value, ties at random. Infinity and NaN are never chosen before a number. */
export function leastPlace(count: number, measure: (place: number) => number, random: Generator): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  let ties = 1;
  for (let place = 0; place < count; place++) {
    const value = measure(place);
    if (value < least) {
      best = place;
      least = value;
      ties = 1;
    } else if (value === least) {
      ties += 1;
      if (random.next() * ties < 1) best = place;
    }
  }
  return best;
}
