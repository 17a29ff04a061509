import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crossover } from '../../../../src/core/profile/crossover.ts';

const compared = (...pairs: readonly (readonly [zeroShare: number, ratio: number])[]) =>
  pairs.map(([zeroShare, ratio]) => ({ zeroShare, ratio }));

describe('where the sparse kernel overtakes', () => {
  it.each([
    ['between two shares, where its time is as long', compared([0, 0.5], [0.5, 0.5], [0.9, 2.5]), 0.75],
    ['from the first share on', compared([0.2, 1.5], [0.9, 4]), 0.2],
    ['at a share where both take the same', compared([0, 0.5], [0.5, 1], [0.9, 3]), 0.5],
    ['never', compared([0, 0.1], [0.9, 0.9]), 1],
    ['never again after a lucky run', compared([0, 1.2], [0.5, 0.8], [0.9, 0.9]), 1],
    ['after its last defeat', compared([0, 1.2], [0.5, 0.5], [0.7, 1.5]), 0.65],
    ['at the share where it first took less', compared([0.5, 0], [0.9, 1.5]), 0.9],
    ['never, where nothing was measured', [], 1],
  ])('%s', (_, measured, share) => {
    expect(crossover(measured)).toBeCloseTo(share, 10);
  });

  it('is where both take the same, whatever a non-zero takes', () => {
    const cost = fc.double({ min: 0.01, max: 10, noNaN: true });
    fc.assert(
      fc.property(cost, cost, cost, (dense, base, perNonZero) => {
        const sparse = (zeroShare: number): number => base + perNonZero * (1 - zeroShare);
        const measured = [0, 0.5, 0.9, 1].map((zeroShare) => ({
          zeroShare,
          ratio: dense / sparse(zeroShare),
        }));
        const share = crossover(measured);
        if (sparse(0) <= dense) expect(share).toBe(0);
        else if (sparse(1) > dense) expect(share).toBe(1);
        else expect(sparse(share)).toBeCloseTo(dense, 6);
      }),
    );
  });

  it('is no later than the first share from which on it won every time, and after the last that it lost', () => {
    const ratios = fc.array(fc.double({ min: 0.01, max: 100, noNaN: true }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(ratios, (drawn) => {
        const measured = drawn.map((ratio, n) => ({ zeroShare: n / drawn.length, ratio }));
        const share = crossover(measured);
        for (const { zeroShare, ratio } of measured) {
          if (ratio < 1) expect(zeroShare).toBeLessThanOrEqual(share);
          if (zeroShare > share) expect(ratio).toBeGreaterThanOrEqual(1);
        }
        const lost = drawn.findLastIndex((ratio) => ratio < 1);
        expect(share).toBeLessThanOrEqual(measured[lost + 1]?.zeroShare ?? 1);
      }),
    );
  });
});
