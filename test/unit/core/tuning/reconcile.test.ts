import { describe, expect, it } from 'vitest';
import { reconcile } from '../../../../src/core/tuning/reconcile.ts';
import { constantOf } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import { observe, type Period, periods, TOLD } from './tuning.fixture.ts';

const SLOW: Period = { hbm: { factor: 2 } };
const usual = periods(TOLD, 10);
/** It stepped from 100 to 125, as version 2; what is live is seen by the next look. */
const away = periods(usual, 2, SLOW);
const { state } = away;

const seen = (version: number, floor: number) => ({
  ...observe(away, {}, DEFAULT_TUNING),
  version,
  values: { floor },
});

describe('what is really live after a step', () => {
  it('is the child: the step came about', () => {
    const next = reconcile(state, seen(2, 125));
    expect(next).toEqual({ ...state, expected: undefined });
    expect(constantOf(next, 'floor').trail).toHaveLength(1);
  });

  it('is the parent: the step is taken back, with a back-off', () => {
    const next = reconcile(state, seen(1, 100));
    expect(constantOf(next, 'floor')).toMatchObject({
      trail: [],
      trial: undefined,
      failures: 1,
      blockedUntil: state.period + 1 + DEFAULT_TUNING.backOffPeriods,
    });
    expect(next.references).toEqual(state.references);
  });

  it.each([
    ['another version with the same value', 3, 125],
    ['the same version with another value', 2, 110],
    ['the parent with another value', 1, 125],
    ['a version with a value of its own', 3, 60],
  ])('is %s: that is a person’s, and what was away is left alone for long', (_, version, floor) => {
    const next = reconcile(state, seen(version, floor));
    expect(next).toMatchObject({ expected: undefined, last: undefined, references: {} });
    expect(constantOf(next, 'floor')).toMatchObject({
      trail: [],
      failures: 0,
      blockedUntil: state.period + DEFAULT_TUNING.backOffPeriodsMax,
    });
  });
});

describe('what is really live without a step', () => {
  it('is as it was: nothing changes', () => {
    expect(reconcile(usual.state, { ...seen(1, 100) })).toBe(usual.state);
  });

  it('is another version: what is usual is learned anew, and a constant at home may be tuned at once', () => {
    const next = reconcile(usual.state, seen(2, 100));
    expect(next).toMatchObject({ references: {}, constants: {} });
  });
});
