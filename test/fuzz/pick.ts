import type { Generator } from '../../src/core/random/generator.ts';

/** One of them, each as likely. */
export function pick<T>(draw: Generator, from: readonly T[]): T {
  const picked = from[draw.below(from.length)];
  if (picked === undefined) throw new RangeError('nothing to pick from');
  return picked;
}

/** True once in so many times. */
export function oneIn(draw: Generator, times: number): boolean {
  return draw.below(times) === 0;
}
