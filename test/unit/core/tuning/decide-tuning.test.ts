import { describe, expect, it } from 'vitest';
import { concludeTuning, decideTuning } from '../../../../src/core/tuning/decide-tuning.ts';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import { limitsOf } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import {
  FLOOR,
  HBM,
  L2,
  observe,
  type Period,
  period,
  periods,
  stepsOf,
  stepsSince,
  TOLD,
  type Told,
} from './tuning.fixture.ts';

/** Long enough for what is usual to be known. */
const usual = periods(TOLD, 10);
const SLOW: Period = { hbm: { factor: 2 } };
const away = periods(usual, 2, SLOW);
/** After the step, a sixth of the requests less. */
const RELIEVED = { requests: 750 };
const MORE = { requests: 1_050 };
const STILL_SLOW: Period = { hbm: { factor: 2, ...RELIEVED }, l2: MORE };
const WELL: Period = { hbm: RELIEVED, l2: MORE };

describe('tuning: when to step', () => {
  it('moves traffic off a domain that got slow, after two periods of it', () => {
    expect(stepsOf(period(usual, SLOW).events)).toEqual([]);
    expect(stepsSince(usual, away)).toEqual([
      {
        type: 'tuning-stepped',
        name: 'floor',
        kind: 'away',
        direction: 'up',
        from: 100,
        to: 125,
        domain: HBM,
        version: 2,
        reason: expect.stringMatching(
          /^a100\/hbm takes 2\.00 × the usual time, its kernels 2\.00 ×, for 2 periods .*moves 16\.0 % of its requests$/,
        ),
        atMs: away.atMs,
      },
    ]);
  });

  it.each([
    { e: 19.9, steps: 0 },
    { e: 20.1, steps: 1 },
  ])('by an E of 20: $steps steps at $e', ({ e, steps }) => {
    const told = period(usual, SLOW);
    const observation = observe(told, SLOW, DEFAULT_TUNING);
    const state = evolveTuning(told.state, { type: 'tuning-looked', observation, terms: DEFAULT_TUNING });
    const floor = state.constants['floor'];
    const evidence = floor?.suspicions[`up ${HBM}`];
    if (floor === undefined || evidence === undefined) throw new Error('nothing is suspected');
    const at = ({ logE, ...test }: (typeof evidence.tests)['queue']) => ({
      ...test,
      logE: logE.map(() => Math.log(e)),
    });
    const { queue, kernel, endToEnd } = evidence.tests;
    const tests = { queue: at(queue), kernel: at(kernel), endToEnd: at(endToEnd) };
    const suspicions = { ...floor.suspicions, [`up ${HBM}`]: { ...evidence, tests } };
    const constants = { ...state.constants, floor: { ...floor, suspicions } };
    expect(stepsOf(concludeTuning({ ...state, constants }))).toHaveLength(steps);
  });

  it('the other way round for the other domain', () => {
    const told = periods(usual, 2, { l2: { factor: 2 } });
    expect(stepsSince(usual, told)).toMatchObject([{ direction: 'down', to: 80, domain: L2 }]);
  });

  it.each<[string, Period]>([
    ['all is as usual', {}],
    ['both domains are slow', { hbm: { factor: 2 }, l2: { factor: 2 } }],
    ['only the queue is longer, and nobody waits longer for it', { hbm: { factor: 1, queueFactor: 3 } }],
    ['the slow one is a little slow', { hbm: { factor: 1.2 } }],
    ['there are few requests', { hbm: { factor: 2, requests: 150 } }],
    ['nobody is there to compare with', { hbm: { factor: 2 }, l2: { requests: 0 } }],
    ['the other pool has no room', { hbm: { factor: 2 }, l2: { utilisation: 0.75 } }],
    ['the step would break the policy', { ...SLOW, blocked: 'tests[0]: a golden test fails' }],
    ['the step would move next to nothing', { ...SLOW, share: 0.005 }],
    ['the step would empty the domain', { ...SLOW, share: 0.85 }],
    ['a canary runs', { ...SLOW, rollout: 'canary' }],
    ['a ramp runs', { ...SLOW, rollout: 'ramp' }],
  ])('takes no step where %s', (_name, given) => {
    expect(stepsSince(usual, periods(usual, 12, given))).toEqual([]);
  });

  it('takes one beside a shadow, which moves no traffic', () => {
    expect(stepsSince(usual, periods(usual, 2, { ...SLOW, rollout: 'shadow' }))).toHaveLength(1);
  });

  it('does not count a change that does not last', () => {
    let told = usual;
    for (let i = 0; i < 10; i += 1) told = period(period(told, SLOW));
    expect(stepsSince(usual, told)).toEqual([]);
  });

  it('begins anew after a pause', () => {
    const paused = period(period(usual, SLOW), { ...SLOW, afterMs: 3 * DEFAULT_TUNING.periodMs });
    expect(stepsSince(usual, paused)).toEqual([]);
    expect(stepsSince(usual, period(paused, SLOW))).toEqual([]);
    expect(stepsSince(usual, periods(paused, 2, SLOW))).toHaveLength(1);
  });

  it('knows nothing before it has seen what is usual', () => {
    expect(stepsOf(periods(TOLD, 4, SLOW).events)).toEqual([]);
    expect(limitsOf(periods(TOLD, 4).state)).toEqual({});
    expect(Object.keys(limitsOf(periods(TOLD, 5).state))).toEqual([HBM, L2]);
  });

  it('looks once per period, however often it is asked', () => {
    const early = observe(away, { afterMs: DEFAULT_TUNING.periodMs - 1 }, DEFAULT_TUNING);
    expect(decideTuning(away.state, early, DEFAULT_TUNING)).toEqual([]);
  });

  it('has nothing left to conclude after it has decided', () => {
    expect(concludeTuning(away.state)).toEqual([]);
  });

  it('goes on step by step while that helps, and stays within the bounds', () => {
    const told = periods(away, 8, STILL_SLOW);
    expect(stepsSince(usual, told).map(({ to }) => to)).toEqual([
      125,
      156.25,
      195.3125,
      244.140625,
      FLOOR.max,
    ]);
  });
});

describe('tuning: what a step did', () => {
  const WORSE: Period = { hbm: { factor: 2, ...RELIEVED }, l2: { factor: 1.5, ...MORE } };

  it('backs off where the others suffer more than the moved requests gain, longer each time', () => {
    const told = periods(away, 30, WORSE);
    expect(told.events.filter(({ type }) => type === 'tuning-backed-off')[0]).toMatchObject({
      name: 'floor',
      periods: 4,
      reason:
        'the last step did not help: v100/l2 went from 1.00 to 1.50 × the usual time; a100/hbm is at 2.00 ×',
    });
    // The gap is narrower than it would have to be for another.
    expect(stepsSince(away, told)).toEqual([]);
  });

  it('tries again after the back-off where the gap is wide enough', () => {
    const apart: Period = { hbm: { factor: 4, ...RELIEVED }, l2: { factor: 1.5, requests: 1_050 } };
    const failed = period(away, { ...apart, hbm: { factor: 2, ...RELIEVED } });
    expect(stepsSince(failed, periods(failed, 3, apart))).toEqual([]);
    expect(stepsSince(failed, periods(failed, 4, apart))).toMatchObject([{ direction: 'up' }]);
  });

  it('backs off where the traffic did not move', () => {
    const busy = { requests: 9_000, utilisation: 0.4 };
    const slow = { hbm: { factor: 2, ...busy }, l2: busy };
    const told = periods(periods(TOLD, 10, { hbm: busy, l2: busy }), 3, slow);
    expect(told.events.at(-1)).toMatchObject({
      type: 'tuning-backed-off',
      reason: `the last step did not help: its requests did not move from ${HBM}`,
    });
  });

  it('takes a step back that did not come about, and backs off', () => {
    const refused = period(period(usual, SLOW), { ...SLOW, refused: true });
    const told = periods(refused, 4, SLOW);
    expect(told.state.constants['floor']).toMatchObject({ trail: [], failures: 1 });
    expect(stepsSince(refused, told)).toEqual([]);
    expect(stepsSince(refused, periods(refused, 5, SLOW))).toMatchObject([{ from: 100, to: 125 }]);
  });
});

describe('tuning: the way back', () => {
  const twice = period(away, STILL_SLOW);

  it('leads home, exactly, where the domain is well again', () => {
    const told = periods(twice, 10, WELL);
    expect(stepsSince(twice, told)).toMatchObject([
      { kind: 'back', direction: 'down', from: 156.25, to: 125 },
      { kind: 'back', direction: 'down', from: 125, to: 100 },
    ]);
    expect(told.value).toBe(FLOOR.default);
    expect(told.state.constants['floor']?.trail).toEqual([]);
  });

  it('is not taken while the domain is as slow as it was', () => {
    expect(
      stepsSince(twice, periods(twice, 60, STILL_SLOW)).filter(({ direction }) => direction === 'down'),
    ).toEqual([]);
  });

  it('is tried after a long quiet where nothing can be seen of the domain', () => {
    const unseen: Period = { hbm: { requests: 20 }, l2: { requests: 1_700 } };
    expect(stepsSince(twice, periods(twice, 19, unseen))).toEqual([]);
    expect(stepsSince(twice, periods(twice, 21, unseen))).toMatchObject([
      { kind: 'probe', direction: 'down' },
    ]);
  });

  it('is not tried while two policies share the traffic', () => {
    const unseen: Period = { hbm: { requests: 20 }, l2: { requests: 1_700 } };
    const quiet = periods(twice, 19, unseen);
    expect(stepsSince(quiet, periods(quiet, 5, { ...unseen, rollout: 'canary' }))).toEqual([]);
  });

  it('waits for less traffic where load was the trouble', () => {
    const loaded = periods(usual, 2, { hbm: { factor: 5, kernelFactor: 1 } });
    expect(stepsSince(usual, loaded)).toMatchObject([{ kind: 'away', direction: 'up' }]);
    const busy = periods(loaded, 15, WELL);
    expect(stepsSince(loaded, busy)).toEqual([]);
    const night: Period = { hbm: { requests: 500 }, l2: { requests: 700 } };
    expect(stepsSince(busy, periods(busy, 2, night))).toMatchObject([{ kind: 'back', to: 100 }]);
  });

  it('waits for more to do it with, where its kernels were slow since batches grew under load', () => {
    const lacking = { factor: 5, kernelFactor: 1.8, utilisation: 0.9 };
    const loaded = periods(usual, 2, { hbm: lacking });
    expect(stepsSince(usual, loaded)).toMatchObject([{ kind: 'away', direction: 'up' }]);
    const relieved: Period = { hbm: { ...RELIEVED, utilisation: 0.7 }, l2: MORE };
    const busy = periods(loaded, 15, relieved);
    expect(stepsSince(loaded, busy)).toEqual([]);
    const again: Period = { hbm: { ...RELIEVED, utilisation: 0.35 }, l2: MORE };
    expect(stepsSince(busy, periods(busy, 2, again))).toMatchObject([{ kind: 'back', to: 100 }]);
  });

  it('takes longer to turn each time the trouble returns', () => {
    const turnsIn = (told: Told): number => told.state.constants['floor']?.turns ?? 0;
    let told = usual;
    const waits: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      let out = told;
      for (let i = 0; i < 100 && out.value === FLOOR.default; i += 1) out = period(out, SLOW);
      let home = out;
      for (let i = 0; i < 100 && home.value !== FLOOR.default; i += 1) home = period(home, WELL);
      waits.push((home.atMs - told.atMs) / DEFAULT_TUNING.periodMs);
      expect(turnsIn(home)).toBe(round);
      told = home;
    }
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(waits[3]).toBeGreaterThan(4 * (waits[0] ?? 0));
  });
});

describe('tuning: people', () => {
  it('what a person sets is home; a constant that was away is left alone for long', () => {
    const undone = period(away, { ...SLOW, set: FLOOR.default });
    expect(undone.state.constants['floor']).toMatchObject({ trail: [], blockedUntil: expect.any(Number) });
    const learned = periods(undone, 8);
    const long = periods(learned, 20, SLOW);
    expect(stepsSince(away, long)).toEqual([]);
    expect(stepsSince(long, periods(long, 10, SLOW))).not.toEqual([]);
  });

  it('a value set at home is the new home', () => {
    const set = periods(period(usual, { set: 120 }), 10);
    const told = periods(periods(set, 2, SLOW), 15, WELL);
    expect(stepsSince(set, told)).toMatchObject([
      { kind: 'away', from: 120, to: 150 },
      { kind: 'back', from: 150, to: 120 },
    ]);
  });
});
