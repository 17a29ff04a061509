import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createGenerator } from '../../../../src/core/random/generator.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';

const draws = (seed: number, name: string, count: number): number[] => {
  const generator = createGenerator(seed, name);
  return Array.from({ length: count }, () => generator.next());
};

describe('createGenerator', () => {
  it('draws the same numbers in every version of millrace: recorded runs depend on it', () => {
    expect(draws(42, 'arrivals', 3)).toEqual([0.40224735246769594, 0.9981202764522532, 0.4495428976699649]);
  });

  it('is the same for the same seed and name, and differs where either differs', () => {
    fc.assert(
      fc.property(
        fc.maxSafeInteger(),
        fc.string(),
        fc.maxSafeInteger(),
        fc.string(),
        (seed, name, seed2, name2) => {
          const first = draws(seed, name, 4);
          expect(draws(seed, name, 4)).toEqual(first);
          if (`${seed}/${name}` !== `${seed2}/${name2}`) expect(draws(seed2, name2, 4)).not.toEqual(first);
        },
      ),
    );
  });

  it('next is uniform in [0, 1)', () => {
    const buckets = new Array<number>(16).fill(0);
    const values = draws(7, 'uniform', 160_000);
    expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
    for (const value of values) {
      const bucket = Math.floor(value * 16);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    expect(chiSquare(buckets)).toBeLessThan(37.7); // 15 degrees of freedom, p = 0.001
  });

  it('neighbouring seeds and names are unrelated', () => {
    const correlation = (a: number[], b: number[]): number => {
      const products = a.map((value, i) => (value - 0.5) * ((b[i] ?? 0) - 0.5));
      return (12 * products.reduce((sum, product) => sum + product, 0)) / a.length;
    };
    const base = draws(1, 'a', 20_000);
    for (const [seed, name] of [
      [2, 'a'],
      [1, 'b'],
      [1, 'aa'],
    ] as const) {
      expect(Math.abs(correlation(base, draws(seed, name, 20_000)))).toBeLessThan(0.04);
    }
  });

  it.each([1, 2, 3, 10, 1_000, 2 ** 31 + 1, 2 ** 32])('below(%d) stays in range', (below) => {
    const generator = createGenerator(3, 'below');
    for (let i = 0; i < 1_000; i++) {
      const drawn = generator.below(below);
      expect(Number.isInteger(drawn) && drawn >= 0 && drawn < below).toBe(true);
    }
  });

  it('below is uniform where the modulo alone would not be', () => {
    const third = 2 ** 32 / 3;
    const below = Math.floor(2 * third);
    const generator = createGenerator(3, 'fair');
    const buckets = [0, 0];
    for (let i = 0; i < 20_000; i++) {
      const half = generator.below(below) < below / 2 ? 0 : 1;
      buckets[half] = (buckets[half] ?? 0) + 1;
    }
    expect(chiSquare(buckets)).toBeLessThan(10.8); // 1 degree of freedom, p = 0.001; the modulo gives 2:1
  });

  it.each([0, -1, 1.5, Number.NaN, 2 ** 32 + 1])('below(%d) is refused', (below) => {
    expect(() => createGenerator(1, 'x').below(below)).toThrow(RangeError);
  });
});

describe('seededRandom', () => {
  it('starts a stream anew at each call, undisturbed by other draws', () => {
    const random = seededRandom(5);
    const first = random.stream('a').next();
    random.stream('b').next();
    expect(random.stream('a').next()).toBe(first);
    expect(random.seed).toBe(5);
  });

  it('refuses a seed that is no safe integer', () => {
    expect(() => seededRandom(0.5)).toThrow(RangeError);
  });
});

function chiSquare(buckets: readonly number[]): number {
  const expected = buckets.reduce((sum, count) => sum + count, 0) / buckets.length;
  return buckets.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}
