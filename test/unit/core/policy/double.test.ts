import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextAbove, nextBelow } from '../../../../src/core/policy/double.ts';

describe('nextAbove and nextBelow', () => {
  it.each([
    [0, Number.MIN_VALUE],
    [-0, Number.MIN_VALUE],
    [1, 1 + Number.EPSILON],
    [-Number.MIN_VALUE, -0],
    [Number.MAX_VALUE, Number.POSITIVE_INFINITY],
    [Number.NEGATIVE_INFINITY, -Number.MAX_VALUE],
    [Number.POSITIVE_INFINITY, Number.NaN],
    [Number.NaN, Number.NaN],
  ])('the double above %d is %d', (x, above) => {
    expect(nextAbove(x)).toBe(above);
    expect(nextBelow(-x)).toBe(-above);
  });

  it('leave nothing between', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (x) => {
        const above = nextAbove(x);
        expect(above).toBeGreaterThan(x);
        expect(nextBelow(above) === x).toBe(true);
        const middle = x / 2 + above / 2;
        expect(middle === x || middle === above || Math.abs(x) < 1e-300).toBe(true);
      }),
    );
  });
});
