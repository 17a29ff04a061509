import { describe, expect, it } from 'vitest';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import type { TuningStepped } from '../../../../src/core/tuning/tuning-event.ts';
import {
  type ConstantState,
  constantOf,
  limitsOf,
  type TuningState,
} from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import { HBM, observe, type Period, period, periods, TOLD, type Told } from './tuning.fixture.ts';

const SLOW: Period = { hbm: { factor: 2 } };
const STILL_SLOW: Period = { hbm: { factor: 2, requests: 750 }, l2: { requests: 1_050 } };
const WELL: Period = { hbm: { requests: 750 }, l2: { requests: 1_050 } };
const usual = periods(TOLD, 10);
const away = periods(usual, 2, SLOW);

function withConstant(told: Told, fields: Partial<ConstantState>): Told {
  const { state } = told;
  return { ...told, state: { ...state, constants: { floor: { ...constantOf(state, 'floor'), ...fields } } } };
}

function looked(told: Told, given: Period): ConstantState {
  const observation = observe(told, given, DEFAULT_TUNING);
  const look = { type: 'tuning-looked', observation, terms: DEFAULT_TUNING } as const;
  return constantOf(evolveTuning(told.state, look), 'floor');
}

function stepped(state: TuningState, fields: Partial<TuningStepped>): ConstantState {
  const step: TuningStepped = {
    type: 'tuning-stepped',
    name: 'floor',
    kind: 'away',
    direction: 'up',
    from: 125,
    to: 156.25,
    domain: HBM,
    version: 3,
    reason: '',
    atMs: away.atMs,
    ...fields,
  };
  return constantOf(evolveTuning(state, step), 'floor');
}

describe('what a look makes of a constant', () => {
  it('that stepped and did not fail: no failures any more', () => {
    const failed = withConstant(away, { failures: 2 });
    expect(constantOf(failed.state, 'floor').trial).toBeDefined();
    expect(looked(failed, WELL)).toMatchObject({ failures: 0, trial: undefined });
  });

  it('that is at home and was left alone for long: no turns and no failures any more', () => {
    const { backOffPeriodsMax } = DEFAULT_TUNING;
    const calm = (since: number): ConstantState =>
      looked(
        withConstant(usual, {
          turns: 3,
          failures: 2,
          lastStep: { period: usual.state.period + 1 - since, direction: 'down', isAway: false },
        }),
        {},
      );
    expect(calm(2 * backOffPeriodsMax)).toMatchObject({ turns: 3, failures: 2 });
    expect(calm(2 * backOffPeriodsMax + 1)).toMatchObject({ turns: 0, failures: 0 });
  });

  it('that is away: quiet periods are those without a sign of the trouble', () => {
    const quiet = withConstant(away, { quietPeriods: 5 });
    expect([looked(quiet, WELL).quietPeriods, looked(quiet, STILL_SLOW).quietPeriods]).toEqual([6, 0]);
  });
});

describe('what a step makes of a constant', () => {
  const evidence = Object.values(constantOf(period(usual, SLOW).state, 'floor').suspicions)[0];
  const { state } = withConstant(away, { recovery: evidence });

  it('away: a trial, and no recovery that was gathered of another step', () => {
    expect(stepped(state, {})).toMatchObject({ trial: { domain: HBM }, recovery: undefined });
    expect(stepped(state, {}).trail).toHaveLength(2);
  });

  it.each(['back', 'probe'] as const)(
    '%s: no trial, one step less, and what was gathered goes on',
    (kind) => {
      const back = stepped(state, { kind, direction: 'down', from: 125, to: 100 });
      expect(back).toMatchObject({ trial: undefined, recovery: evidence, trail: [] });
    },
  );

  it('away again after it had come back: a turn more', () => {
    const back = { period: 3, direction: 'down', isAway: false } as const;
    const again = withConstant(away, { lastStep: back, turns: 1 }).state;
    expect([stepped(again, {}).turns, stepped(state, {}).turns]).toEqual([2, 0]);
  });

  it('that did not help: one failure more, each time', () => {
    const event = { type: 'tuning-backed-off', name: 'floor', periods: 4, reason: '', atMs: 1 } as const;
    const once = evolveTuning(state, event);
    const failed = constantOf(evolveTuning(once, event), 'floor');
    expect(failed).toMatchObject({ failures: 2, trial: undefined, blockedUntil: state.period + 4 });
  });
});

describe('what is usual', () => {
  it('follows a change that all domains share', () => {
    const both: Period = { hbm: { factor: 1.6 }, l2: { factor: 1.6 } };
    const later = periods(usual, 80, both);
    const limitOf = (told: Told): number => limitsOf(told.state)[HBM]?.kernel ?? 0;
    expect(limitOf(later) / limitOf(usual)).toBeGreaterThan(1.4);
  });

  it('is not learned from a domain in trouble', () => {
    expect(limitsOf(periods(usual, 40, { ...SLOW, share: 0.85 }).state)).toEqual(limitsOf(usual.state));
  });
});

it('a look that is not newer than the last one is none', () => {
  const told = periods(TOLD, 10);
  const observation = observe(told, {}, DEFAULT_TUNING);
  const look = { type: 'tuning-looked', observation, terms: DEFAULT_TUNING } as const;
  const once = evolveTuning(told.state, look);
  const earlier = { ...look, observation: { ...observation, atMs: observation.atMs - 1 } };
  expect([look, earlier].map((again) => evolveTuning(once, again))).toEqual([once, once]);
});
