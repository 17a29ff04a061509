import { murmur3OfPair } from '../rollout/murmur3.ts';

/**
 * Requests of one key are alike, so a thousand requests of ten users tell no more than ten. How much they tell is seen from how far groups of whole
 * keys are apart ("random groups", Wolter, Introduction to Variance Estimation, 2007, chapter 2).
 */
export const KEY_GROUPS = 8;

const SALT = 'score-groups';

/** The group of a key, 0 … KEY_GROUPS - 1: by a hash that has nothing to do with that of a rollout's arms. */
export function keyGroupOf(key: string): number {
  return murmur3OfPair(SALT, key) % KEY_GROUPS;
}
