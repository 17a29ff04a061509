import { randomInt } from 'node:crypto';
import { seededRandom } from '../../core/random/seeded-random.ts';
import type { RandomSource } from '../../ports/random.ts';

const SEED_BELOW = 2 ** 48 - 1;

/** A random source whose seed comes from the operating system; `seed` says which, so that a run can be told and repeated. */
export function systemRandom(): RandomSource {
  return seededRandom(randomInt(SEED_BELOW));
}
