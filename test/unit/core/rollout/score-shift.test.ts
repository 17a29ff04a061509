import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeadScores, ScoreGroup } from '../../../../src/core/rollout/score-observation.ts';
import { headShift, judgeIndex, judgeMean } from '../../../../src/core/rollout/score-shift.ts';

const GROUPS = 8;

/** Counts spread evenly over the groups of keys. */
function even(counts: readonly number[], mean = 0.5, deviation = 0.1): ScoreGroup[] {
  const size = counts.reduce((sum, count) => sum + count, 0) / GROUPS;
  return Array.from({ length: GROUPS }, () => ({
    sum: size * mean,
    sumOfSquares: size * (mean ** 2 + deviation ** 2),
    bins: counts.map((count) => count / GROUPS),
  }));
}

const headOf = (stable: ScoreGroup[], candidate: ScoreGroup[]): HeadScores => ({
  edges: Array.from({ length: (stable[0]?.bins.length ?? 1) - 1 }, (_, index) => index),
  stable,
  candidate,
});

describe('the shift of a head', () => {
  it('is the population stability index of the two histograms', () => {
    // Siddiqi's sum, by hand, of 20/30/50 % against 25/35/40 %; a million scores make the lean on the pooled shares nothing.
    const shift = headShift(headOf(even([250_000, 350_000, 400_000]), even([200_000, 300_000, 500_000])));
    const byHand =
      (0.2 - 0.25) * Math.log(0.2 / 0.25) +
      (0.3 - 0.35) * Math.log(0.3 / 0.35) +
      (0.5 - 0.4) * Math.log(0.5 / 0.4);
    expect(shift.psi).toBeCloseTo(byHand, 5);
    expect(shift).toMatchObject({ stableCount: 1_000_000, candidateCount: 1_000_000 });
  });

  it('is the distance of the means in deviations of the control', () => {
    const shift = headShift(headOf(even([800, 800], 0.5, 0.1), even([80, 80], 0.46, 0.3)));
    expect(shift.meanShift).toBeCloseTo(0.4, 10);
    expect(shift.stableMean).toBeCloseTo(0.5, 10);
    expect(shift.candidateMean).toBeCloseTo(0.46, 10);
    // two means of 1 600 and 160 independent scores
    expect(shift.meanShiftError).toBeCloseTo(Math.sqrt(0.01 / 1_600 + 0.09 / 160) / 0.1, 6);
  });

  it('of two constant scores is none, or out of all bounds', () => {
    expect(headShift(headOf(even([800], 1, 0), even([80], 1, 0))).meanShift).toBe(0);
    const apart = headShift(headOf(even([800, 0], 1, 0), even([0, 80], 2, 0)));
    expect(apart.meanShift).toBeGreaterThan(1_000);
    expect(judgeMean(apart.meanShift, apart.meanShiftError, 0.25)).toBe('over');
    expect(apart.psi).toBeGreaterThan(4);
  });

  it('has the noise of so many independent scores at least', () => {
    const { psiNoise } = headShift(headOf(even([800, 800, 800, 800]), even([80, 80, 80, 80])));
    expect(psiNoise).toBeCloseTo(3 / 3_200 + 3 / 320, 10);
  });

  it('has more where keys agree with themselves, and no bound where there is a single group of keys', () => {
    const alone = even([80, 80]).map((group, place) => (place === 0 ? group : { ...group, bins: [0, 0] }));
    expect(headShift(headOf(even([800, 800]), alone)).psiNoise).toBe(Number.POSITIVE_INFINITY);
    const clustered = even([80, 80]).map((group, place) => ({
      ...group,
      bins: place % 2 ? [20, 0] : [0, 20],
    }));
    const noisy = headShift(headOf(even([800, 800]), clustered));
    expect(noisy.psi).toBeLessThan(0.001);
    // each group of twenty tells as much as one score: (8 / 7) / 8 for either bin
    expect(noisy.psiNoise).toBeCloseTo(((8 / 7) * 8 * 100 * 2 * 2) / 160 ** 2 + 1 / 1_600, 10);
  });

  it('is never below 0, nor above what a mirror of it is, and never NaN', () => {
    const groups = fc.array(
      fc.record({
        sum: fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        sumOfSquares: fc.double({ min: 0, max: 1e6, noNaN: true }),
        bins: fc.array(fc.nat(1_000), { minLength: 3, maxLength: 3 }),
      }),
      { minLength: GROUPS, maxLength: GROUPS },
    );
    const some = groups.filter((all) => all.some(({ bins }) => bins.some((count) => count > 0)));
    fc.assert(
      fc.property(some, some, (stable, candidate) => {
        const shift = headShift(headOf(stable, candidate));
        const mirrored = headShift(headOf(candidate, stable));
        expect(shift.psi).toBeGreaterThanOrEqual(0);
        expect(shift.psi).toBeCloseTo(mirrored.psi, 9);
        for (const value of Object.values(shift)) expect(value).not.toBeNaN();
        expect(headShift(headOf(stable, stable)).psi).toBeCloseTo(0, 9);
      }),
    );
  });
});

describe('a shift of the mean', () => {
  it.each([
    [0.05, 0.12, 'within'],
    [0.05, 0.13, 'unclear'],
    [0.25, 0.2, 'unclear'],
    [0, Number.POSITIVE_INFINITY, 'unclear'],
    [0.3, 0.01, 'over'],
    [0.3, 0.02, 'unclear'],
  ] as const)('of %s with an error of %s is %s a limit of 0.25', (value, error, finding) => {
    expect(judgeMean(value, error, 0.25)).toBe(finding);
  });

  it('is not shown to be none by a few scores that happen to lie near', () => {
    const few = even([1, 1], 0.45, 0.05).map((group, place) =>
      place === 0
        ? { bins: [1, 1], sum: 0.9, sumOfSquares: 0.41 }
        : { ...group, bins: [0, 0], sum: 0, sumOfSquares: 0 },
    );
    const { meanShift, meanShiftError } = headShift(headOf(even([400, 400], 0.45, 0.29), few));
    expect(meanShift).toBeLessThan(0.1);
    expect(judgeMean(meanShift, meanShiftError, 0.1)).toBe('unclear');
  });
});

describe('a population stability index', () => {
  it.each([
    [0.25, 0.2, 'within'],
    [0.3, 0, 'over'],
    [0.3, 0.01, 'over'],
    [0.3, 0.02, 'unclear'],
    [0.3, Number.POSITIVE_INFINITY, 'unclear'],
  ] as const)('of %s with a noise of %s is %s a limit of 0.25', (value, noise, finding) => {
    expect(judgeIndex(value, noise, 0.25)).toBe(finding);
  });
});
