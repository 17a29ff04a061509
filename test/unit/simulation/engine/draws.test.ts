import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import {
  type Distribution,
  drawsOf,
  meanOf,
  secondMomentRatio,
} from '../../../../src/simulation/engine/draws.ts';

const DRAWS = 100_000;

const CASES: readonly (Distribution & { medianOfMean: number })[] = [
  { kind: 'fixed', value: 3, medianOfMean: 1 },
  { kind: 'uniform', from: 1, to: 4, medianOfMean: 1 },
  { kind: 'exponential', mean: 7, medianOfMean: Math.LN2 },
  { kind: 'lognormal', mean: 7, sigma: 0.8, medianOfMean: Math.exp(-0.32) },
];

describe('drawsOf', () => {
  it.each(CASES)('draws $kind with its mean, second moment and median', (distribution) => {
    const draw = drawsOf(distribution, seededRandom(1).stream('draws'));
    const draws = Float64Array.from({ length: DRAWS }, draw);
    const mean = draws.reduce((sum, value) => sum + value, 0) / DRAWS;
    const square = draws.reduce((sum, value) => sum + value ** 2, 0) / DRAWS;
    const median = draws.sort()[DRAWS / 2] ?? 0;
    // Five standard errors of the worst case here, about.
    expect(mean / meanOf(distribution)).toBeCloseTo(1, 1.5);
    expect(square / mean ** 2 / secondMomentRatio(distribution)).toBeCloseTo(1, 1.1);
    expect(median / mean / distribution.medianOfMean).toBeCloseTo(1, 1.5);
  });

  it.each([
    { kind: 'fixed', value: -1 },
    { kind: 'uniform', from: 2, to: 1 },
    { kind: 'exponential', mean: Number.NaN },
    { kind: 'lognormal', mean: 1, sigma: Number.POSITIVE_INFINITY },
  ] as const)('refuses $kind with a parameter that is none', (distribution) => {
    expect(() => drawsOf(distribution, seededRandom(1).stream('draws'))).toThrow(RangeError);
  });
});
