import { MillraceError } from '../errors.ts';
import { murmur3OfPair } from './murmur3.ts';

/** Buckets are unsigned 32-bit integers: a threshold of 2^32 takes all of them. */
const BUCKETS = 2 ** 32;

export type Arm = 'STABLE' | 'CANARY';

export interface RolloutUnit {
  readonly inclusionSalt: string;
  readonly armSalt: string;
  /** Share of the keys that the canary gets, 0 … 100. */
  readonly percent: number;
}

/** murmur3_32(salt ‖ 0 ‖ key): an unsigned 32-bit integer. */
export function bucketOf(salt: string, key: string): number {
  return murmur3OfPair(salt, key);
}

/** The bucket below which `percent` of all buckets lie: 0 takes none, 100 takes all, anything below 100 leaves one out at least. */
export function thresholdOf(percent: number): number {
  if (!(percent >= 0 && percent <= 100))
    throw new MillraceError('INVALID_POLICY', 'A share of keys is not a percentage', {
      value: percent,
      allowed: '0 … 100',
    });
  return percent === 100 ? BUCKETS : Math.min(Math.floor((percent / 100) * BUCKETS), BUCKETS - 1);
}

/** The two salts of a rollout, from the one that its pointer carries. */
export function saltsOf(salt: string): { inclusionSalt: string; armSalt: string } {
  return { inclusionSalt: `i/${salt}`, armSalt: `a/${salt}` };
}

/**
 * The arm of a key. Twice the canary's share is included in the rollout, and an independent hash gives half of those the canary;
 * above 50 % everybody is included. So neither hash is asked twice: a hash that is already known to be small would skew the arms
 * (Unleash/unleash-node-sdk#533). Both thresholds only grow with `percent`, so that widening never takes a key out of the canary.
 * A key that is missing or empty goes to STABLE: all of them would land on one side together.
 */
export function armOf(unit: RolloutUnit, key: string | undefined): Arm {
  const included = thresholdOf(Math.min(unit.percent * 2, 100));
  const canary = thresholdOf(Math.max(unit.percent, 50));
  if (key === undefined || key === '' || included === 0) return 'STABLE';
  if (included !== BUCKETS && bucketOf(unit.inclusionSalt, key) >= included) return 'STABLE';
  return bucketOf(unit.armSalt, key) < canary ? 'CANARY' : 'STABLE';
}
