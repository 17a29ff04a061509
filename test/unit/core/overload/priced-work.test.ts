import { describe, expect, it } from 'vitest';
import { lnDensity } from '../../../../src/core/overload/priced-work.ts';

describe('the density of work', () => {
  it.each([
    ['value per ms', 8, 4, Math.log(2)],
    ['that of next to nothing, where no value was given: the cheaper comes first', 0, 4, Math.log(1e-9 / 4)],
    ['the same where the value is below nothing', -1, 4, Math.log(1e-9 / 4)],
    ['the same where the value is no number', Number.NaN, 4, Math.log(1e-9 / 4)],
    ['bounded, where nothing is to be computed', 1e30, 0, 31],
    ['bounded, where the cost is beyond measure', 1, Number.POSITIVE_INFINITY, -31],
    ['bounded, where the value is', Number.POSITIVE_INFINITY, 4, 31],
  ])('is %s', (_, value, costMs, expected) => {
    expect(lnDensity({ value, costMs })).toBeCloseTo(expected, 10);
  });
});
