import { expect, it } from 'vitest';
import { logGamma } from '../../../../src/core/rollout/log-gamma.ts';

it.each([
  [0.5, 0.5 * Math.log(Math.PI)],
  [1, 0],
  [2, 0],
  [5, Math.log(24)],
  [14.9, 24.924132002217277],
  [21, Math.log(2_432_902_008_176_640_000)],
])('log Γ(%d)', (x, expected) => {
  expect(logGamma(x)).toBeCloseTo(expected, 11);
});

it('keeps its recurrence for large and small arguments', () => {
  for (const x of [0.1, 3.7, 14.99, 15.01, 1e3, 1e6])
    expect((logGamma(x + 1) - logGamma(x)) / Math.log(x)).toBeCloseTo(1, 8);
});
