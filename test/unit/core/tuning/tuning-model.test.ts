import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MISFIT } from '../../../../src/core/control/json-shape.ts';
import { stepTunable } from '../../../../src/core/policy/compile.ts';
import { concludeTuning, decideTuning } from '../../../../src/core/tuning/decide-tuning.ts';
import { tuningEventShape } from '../../../../src/core/tuning/event-shape.ts';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import type { TuningEvent, TuningStepped } from '../../../../src/core/tuning/tuning-event.ts';
import type { RolloutPhase, TuningObservation } from '../../../../src/core/tuning/tuning-observation.ts';
import { INITIAL_TUNING, type TuningState } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import { FLOOR, type Period, period, TOLD, type Told } from './tuning.fixture.ts';

const doing = fc.record({
  factor: fc.constantFrom(0.8, 1, 1, 1, 1.3, 2, 2, 5),
  kernelFactor: fc.option(fc.constantFrom(1, 2), { nil: undefined }),
  requests: fc.constantFrom(0, 20, 300, 700, 900, 900, 1_800),
  utilisation: fc.constantFrom(0.3, 0.5, 0.9),
});

const odd: fc.Arbitrary<Period> = fc.record({
  hbm: doing,
  l2: doing,
  rollout: fc.constantFrom<RolloutPhase>('none', 'none', 'none', 'shadow', 'canary', 'ramp'),
  refused: fc.constantFrom(false, false, false, true),
  share: fc.constantFrom(0.005, 0.05, 0.16, 0.4, 0.9),
  afterMs: fc.constantFrom(
    DEFAULT_TUNING.periodMs,
    DEFAULT_TUNING.periodMs + 400,
    10 * DEFAULT_TUNING.periodMs,
    1_000,
  ),
});
const less = { requests: 750 };
const more = { requests: 1_050 };
/** What the controller is made for, and anything else. */
const given: fc.Arbitrary<Period> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Period>({ hbm: { factor: 2, ...less }, l2: more }) },
  { weight: 3, arbitrary: fc.constant<Period>({ hbm: more, l2: { factor: 2, ...less } }) },
  { weight: 4, arbitrary: fc.constant<Period>({ hbm: less, l2: more }) },
  {
    weight: 1,
    arbitrary: fc.constant<Period>({ hbm: { factor: 2, ...less }, l2: { factor: 1.5, ...more } }),
  },
  { weight: 2, arbitrary: odd },
);
/** A stretch of periods alike, so that something may last. */
const stretch: fc.Arbitrary<{ given: Period; count: number }> = fc.record({
  given,
  count: fc.integer({ min: 1, max: 12 }),
});
/** Now and then a person sets the constant. */
const person: fc.Arbitrary<number | undefined> = fc.oneof(
  { weight: 12, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom(60, 100, 180) },
);
const story = fc.array(fc.tuple(stretch, person), { minLength: 1, maxLength: 16 });
type Story = ReadonlyArray<readonly [{ given: Period; count: number }, number | undefined]>;

/** What is usual comes first: without it nothing ever happens. */
function tell(chapters: Story, each: (before: Told, after: Told, given: Period) => void): Told {
  let told: Told = TOLD;
  const go = (given: Period): void => {
    const next = period(told, given);
    each(told, next, given);
    told = next;
  };
  for (let i = 0; i < 6; i += 1) go({});
  for (const [{ given, count }, set] of chapters) {
    if (set !== undefined) go({ set });
    for (let i = 0; i < count; i += 1) go(given);
  }
  return told;
}

const newEvents = (before: Told, after: Told): readonly TuningEvent[] =>
  after.events.slice(before.events.length);
const stepIn = (events: readonly TuningEvent[]): TuningStepped | undefined =>
  events.find((event) => event.type === 'tuning-stepped');

it('never leaves the bounds, steps once at most per look, a whole step, and in no canary or ramp', () => {
  let taken = 0;
  fc.assert(
    fc.property(story, (chapters) => {
      tell(chapters, (before, after, given) => {
        const events = newEvents(before, after);
        const steps = events.filter(({ type }) => type === 'tuning-stepped');
        expect(steps.length).toBeLessThanOrEqual(1);
        expect(after.value).toBeGreaterThanOrEqual(FLOOR.min);
        expect(after.value).toBeLessThanOrEqual(FLOOR.max);
        const step = stepIn(events);
        if (step === undefined) return;
        taken += 1;
        expect(['canary', 'ramp']).not.toContain(given.rollout);
        expect(step.from).toBe(given.set ?? before.value);
        expect(step.to).not.toBe(step.from);
        const { direction, from, to } = step;
        const trail = before.state.constants['floor']?.trail ?? [];
        const back = trail.map((one) => one.from);
        const isStep = to === stepTunable(FLOOR, from, direction) || back.includes(to);
        expect(isStep).toBe(true);
        expect(to > from).toBe(direction === 'up');
      });
    }),
    { numRuns: 300 },
  );
  expect(taken).toBeGreaterThan(50);
});

it('two steps are a period apart, and opposite ones a back-off', () => {
  let opposite = 0;
  fc.assert(
    fc.property(story, (chapters) => {
      let looks = 0;
      let last: { step: TuningStepped; look: number; turns: number } | undefined;
      let blockedUntil = 0;
      tell(chapters, (before, after, given) => {
        const events = newEvents(before, after);
        if (events.length > 0) looks += 1;
        // What a person sets, and a step that did not come about, is no step to be against.
        if (given.set !== undefined) last = undefined;
        const step = stepIn(events);
        if (step !== undefined) {
          expect(looks).toBeGreaterThanOrEqual(blockedUntil);
          if (last !== undefined) {
            expect(step.atMs - last.step.atMs).toBeGreaterThanOrEqual(DEFAULT_TUNING.periodMs);
            if (step.direction !== last.step.direction) {
              opposite += 1;
              expect(looks - last.look).toBeGreaterThanOrEqual(
                Math.min(32, DEFAULT_TUNING.turnPeriods * 2 ** last.turns),
              );
            }
          }
          const turns = after.state.constants['floor']?.turns ?? 0;
          last = given.refused === true ? last : { step, look: looks, turns };
        }
        for (const event of events)
          if (event.type === 'tuning-backed-off')
            blockedUntil = Math.max(blockedUntil, looks + event.periods);
      });
    }),
    { numRuns: 300 },
  );
  expect(opposite).toBeGreaterThan(10);
});

it('state and events survive JSON, and the log gives the same state and decisions again', () => {
  fc.assert(
    fc.property(story, (chapters) => {
      const told = tell(chapters, (before, after) => {
        const events = newEvents(before, after);
        const revived: TuningState = JSON.parse(JSON.stringify(before.state));
        const look = events[0];
        if (look?.type === 'tuning-looked') {
          const { observation, terms } = look;
          expect(decideTuning(revived, observation, terms)).toEqual(events);
        }
        for (const event of events)
          expect(tuningEventShape(JSON.parse(JSON.stringify(event)))).toEqual(event);
      });
      expect(told.events.reduce(evolveTuning, INITIAL_TUNING)).toEqual(told.state);
      expect(JSON.parse(JSON.stringify(told.state))).toEqual(JSON.parse(JSON.stringify(told.state)));
      expect(concludeTuning(told.state)).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

it('reads no event that is none', () => {
  const shown: TuningObservation | undefined = period(TOLD).state.last;
  const looked = { type: 'tuning-looked', observation: shown, terms: DEFAULT_TUNING };
  expect(tuningEventShape(looked)).toEqual(looked);
  for (const broken of [
    {},
    null,
    { type: 'tuning-looked' },
    { ...looked, observation: { ...shown, rollout: 'soon' } },
    { ...looked, observation: { ...shown, values: { floor: 'high' } } },
    { ...looked, terms: { ...DEFAULT_TUNING, quantile: 2 } },
    { type: 'tuning-backed-off', name: 'floor', periods: -1, reason: '', atMs: 0 },
  ])
    expect(tuningEventShape(broken)).toBe(MISFIT);
});
