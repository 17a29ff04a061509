import { createGenerator, type Generator } from './generator.ts';

/**
 * Named streams from one seed; fits the port `RandomSource`. Every call of `stream` starts that stream from its beginning: what it
 * draws depends on the seed and the name alone, not on who drew before.
 */
export interface SeededRandom {
  readonly seed: number;
  stream(name: string): Generator;
}

/** @param seed any safe integer. */
export function seededRandom(seed: number): SeededRandom {
  if (!Number.isSafeInteger(seed)) throw new RangeError(`seed must be a safe integer, not ${seed}`);
  return { seed, stream: (name) => createGenerator(seed, name) };
}
