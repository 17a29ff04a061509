import type { Generator } from '../../src/core/random/generator.ts';
import { KEY_GROUPS } from '../../src/core/scores/key-group.ts';
import { drawNormal } from '../rollout-statistics/draws.ts';

const HEAVIEST = 50;

/** Keys of Zipf traffic without the 50 heaviest. Each has a score of its own, around which its requests' scores lie. */
export interface Keys {
  /** Running sum of the keys' weights. */
  readonly weights: Float64Array;
  /** 1 for the canary's. */
  readonly arms: Uint8Array;
  readonly groups: Uint8Array;
  /** Standard normal, scaled by how much keys differ. */
  readonly levels: Float64Array;
}

/** @param likeness share of the variance of scores that is between keys, 0 … 1 (intraclass correlation) */
export function drawKeys(random: Generator, count: number, percent: number, likeness: number): Keys {
  const size = count - HEAVIEST;
  const weights = new Float64Array(size);
  let sum = 0;
  for (let i = 0; i < size; i++) {
    sum += 1 / (i + 1 + HEAVIEST);
    weights[i] = sum;
  }
  return {
    weights,
    arms: Uint8Array.from({ length: size }, () => (random.next() * 100 < percent ? 1 : 0)),
    groups: Uint8Array.from({ length: size }, () => random.below(KEY_GROUPS)),
    levels: Float64Array.from({ length: size }, () => drawNormal(random) * Math.sqrt(likeness)),
  };
}

/** Whose request comes next. */
export function drawKey(random: Generator, { weights }: Keys): number {
  const at = random.next() * (weights.at(-1) ?? 0);
  let low = 0;
  let high = weights.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((weights[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
