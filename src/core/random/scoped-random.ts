import type { Generator } from './generator.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The streams of one of many that are alike: what it draws depends on its name, and not on how many others there are. */
export function scopedRandom(random: SeededRandom, scope: string): SeededRandom {
  return { seed: random.seed, stream: (name): Generator => random.stream(`${scope}/${name}`) };
}
