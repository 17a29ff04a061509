import { describe, expect, it } from 'vitest';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import type { MetricGuardrail } from '../../../../src/core/policy/document.ts';
import { type MetricReading, readingOf } from '../../../../src/core/rollout/metric-reading.ts';
import { missingOf } from '../../../../src/core/rollout/readiness.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import type { RolloutTerms } from '../../../../src/core/rollout/rollout-terms.ts';
import { healthy, inShadow, inStage, rolloutOf, scopeOf, type Told } from './rollout.fixture.ts';

const ERRORS: MetricGuardrail = {
  name: 'errors',
  query: 'sum(rate(errors[1m]))',
  min: undefined,
  max: 0.01,
  forMs: 0,
  breach: 'hold',
};

const value = (...values: readonly number[]): MetricReading => readingOf(values);

function guarded(query: Partial<MetricGuardrail> = {}, terms: Partial<RolloutTerms> = {}): Told {
  return inShadow({ queries: [{ ...ERRORS, ...query }], ...terms });
}

/** Looks in which the query has these readings, one after another; undefined for a look without one. */
function reading(told: Told, ...readings: readonly (MetricReading | undefined)[]): Told {
  return readings.reduce(
    (now, each) => healthy(now, 1, { metrics: each === undefined ? {} : { errors: each } }),
    told,
  );
}

const codesOf = (told: Told): readonly string[] =>
  rolloutOf(told).hold?.reasons.map(({ code }) => code) ?? [];

describe('a query of the guardrails', () => {
  it.each<[string, Partial<MetricGuardrail>, MetricReading, boolean]>([
    ['below its maximum', {}, value(0.009), false],
    ['at its maximum', {}, value(0.01), false],
    ['above its maximum', {}, value(0.011), true],
    ['at its minimum', { min: 0.5, max: undefined }, value(0.5), false],
    ['below its minimum', { min: 0.5, max: undefined }, value(0.4), true],
    ['within both bounds', { min: 0.5, max: 0.6 }, value(0.55), false],
    ['of several series, one above', {}, value(0, 0.02, 0.001), true],
    ['of several series, one below', { min: 0, max: undefined }, value(3, -1), true],
    ['at infinity', {}, value(Number.POSITIVE_INFINITY), true],
  ])('%s: %s %s holds: %s', (_, query, seen, holds) => {
    expect(codesOf(reading(guarded(query), seen))).toEqual(holds ? ['external-guardrail'] : []);
  });

  it('says in its reason what is wanted, and what there is', () => {
    const told = reading(guarded(), value(0.02, 0.5));
    expect(rolloutOf(told).hold?.reasons).toEqual([
      {
        code: 'external-guardrail',
        text: 'guardrails are broken: errors is 0.5, at most 0.01 is wanted (the worst of 2 series)',
      },
    ]);
  });

  it.each([
    ['without a series', value()],
    ['that is NaN', value(Number.NaN)],
    ['that nobody answers', { failed: 'unreachable: ECONNREFUSED' }],
  ])('%s is a hold, never a pass, and ends when there is an answer', (_, silent) => {
    const told = reading(guarded({}, { autoPromote: true }), value(0), silent);
    expect(codesOf(told)).toEqual(['external-no-data']);
    const still = reading(told, ...Array<MetricReading>(10).fill(silent));
    expect(rolloutOf(still).stage).toBe(0);
    expect(codesOf(reading(still, value(0)))).toEqual([]);
  });

  it('that was never read is missing; one that stays away is a hold after the time of silence', () => {
    const told = reading(guarded(), ...Array(4).fill(undefined));
    expect(codesOf(told)).toEqual([]);
    expect(missingOf(rolloutOf(told))).toEqual(['guardrail errors was not read yet']);
    const away = reading(guarded(), value(0), ...Array(6).fill(undefined));
    expect(codesOf(away)).toEqual(['external-no-data']);
    expect(rolloutOf(away).hold?.reasons[0]?.text).toMatch(/errors: no answer for 60 s/);
  });

  it('counts when it was broken for as long as it says, without a good reading between', () => {
    const bad = value(1);
    const told = reading(guarded({ forMs: 20_000 }), bad, bad);
    expect(codesOf(told)).toEqual([]);
    expect(missingOf(rolloutOf(told)).join()).toMatch(/not clear yet: errors is 1.*counts after 20 s/);
    expect(codesOf(reading(told, bad))).toEqual(['external-guardrail']);
    expect(codesOf(reading(told, value(0), bad, bad))).toEqual([]);
    expect(missingOf(rolloutOf(reading(told, value(0), value(0))))).toEqual([]);
  });

  it('counts also where some of the readings between were none; none is no breach by itself', () => {
    const [bad, none] = [value(1), { failed: 'unreachable: ECONNREFUSED' }];
    const told = reading(guarded({ forMs: 20_000, breach: 'roll-back' }), bad, none, none, none);
    expect(codesOf(told)).toEqual(['external-no-data']);
    expect(scopeOf(reading(told, bad))).toMatchObject({
      rollout: undefined,
      ended: { outcome: 'rolled-back' },
    });
    expect(codesOf(reading(told, value(0), none, bad))).toEqual([]);
  });

  it('rolls back where the policy wants that, and only holds where nothing is rolled back by itself', () => {
    const told = reading(guarded({ breach: 'roll-back' }), value(1));
    expect(scopeOf(told)).toMatchObject({
      rollout: undefined,
      ended: { outcome: 'rolled-back', reason: 'guardrails are broken: errors is 1, at most 0.01 is wanted' },
    });
    const held = reading(guarded({ breach: 'roll-back' }, { autoRollback: false }), value(1));
    expect(codesOf(held)).toEqual(['external-guardrail']);
    // No answer is no breach.
    expect(codesOf(reading(guarded({ breach: 'roll-back' }), { failed: 'away' }))).toEqual([
      'external-no-data',
    ]);
  });

  it('holds in every stage, and what was seen of it goes on into the next', () => {
    for (const stage of [1, 3]) {
      const told = inStage(stage, { queries: [{ ...ERRORS, name: 'other' }] });
      expect(codesOf(healthy(told, 1, { metrics: { other: value(1) } }))).toEqual(['external-guardrail']);
    }
  });

  it('is derived again from the log', () => {
    const query = { forMs: 10_000, breach: 'roll-back' } as const;
    const told = reading(guarded(query), value(0), { failed: 'away' }, value(1), value(1), value(1));
    const log = told.log.flatMap((event) => readControllerEvent(JSON.stringify(event)) ?? []);
    expect(log).toHaveLength(told.log.length);
    expect(log.at(-1)?.type).toBe('rollout-rolled-back');
    expect(replay(log).disagreements).toEqual([]);
    const tampered = log.map((event) =>
      event.type === 'rollout-looked'
        ? { ...event, observation: { ...event.observation, metrics: {} } }
        : event,
    );
    expect(replay(tampered).disagreements.length).toBeGreaterThan(0);
  });
});
