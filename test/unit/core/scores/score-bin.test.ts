import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SCORE_BINS, scoreBin } from '../../../../src/core/scores/score-bin.ts';

const score = fc.float({ noNaN: true, noDefaultInfinity: true });
const ZERO = (SCORE_BINS - 1) / 2;

describe('the bin of a score', () => {
  it('rises with the score, and is the same distance from the one of 0 on either side', () => {
    fc.assert(
      fc.property(score, score, (a, b) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        expect(scoreBin(low)).toBeLessThanOrEqual(scoreBin(high));
        expect(scoreBin(a) - ZERO).toBe(ZERO - scoreBin(-a));
      }),
    );
  });

  it('is one of SCORE_BINS, at most 1/16 wide between 2^-20 and 2^20', () => {
    fc.assert(
      fc.property(fc.float({ min: Math.fround(2 ** -20), max: 2 ** 19, noNaN: true }), (value) => {
        expect(scoreBin(value)).toBeGreaterThanOrEqual(0);
        expect(scoreBin(value)).toBeLessThan(SCORE_BINS);
        expect(scoreBin(value * 1.0626)).toBeGreaterThan(scoreBin(value));
      }),
    );
  });

  it.each([
    ['0', 0, ZERO],
    ['-0', -0, ZERO],
    ['what is too small', 2 ** -21, ZERO],
    ['the smallest that is told from 0', 2 ** -20, ZERO + 1],
    ['the largest', 3.4e38, SCORE_BINS - 1],
    ['what is too large', 2 ** 20, SCORE_BINS - 1],
    ['what is too low', -(2 ** 30), 0],
  ])('of %s is %s → %s', (_, value, bin) => {
    expect(scoreBin(value)).toBe(bin);
  });
});
