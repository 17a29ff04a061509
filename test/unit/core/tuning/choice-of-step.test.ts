import { describe, expect, it } from 'vitest';
import { startRatioTest } from '../../../../src/core/rollout/sequential-test.ts';
import { concludeTuning } from '../../../../src/core/tuning/decide-tuning.ts';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import type { TuningStepped } from '../../../../src/core/tuning/tuning-event.ts';
import type { DomainObservation, Effect } from '../../../../src/core/tuning/tuning-observation.ts';
import {
  type ConstantState,
  constantOf,
  type TuningState,
} from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING, WORSE } from '../../../../src/core/tuning/tuning-terms.ts';
import { HBM, L2, observe, type Period, period, periods, TOLD, type Told } from './tuning.fixture.ts';

const SLOW: Period = { hbm: { factor: 2 } };
const WELL: Period = { hbm: { requests: 750 }, l2: { requests: 1_050 } };

/** Right after a look, with what follows from it still to be concluded. */
function looked(told: Told, given: Period): TuningState {
  const observation = observe(told, given, DEFAULT_TUNING);
  return evolveTuning(told.state, { type: 'tuning-looked', observation, terms: DEFAULT_TUNING });
}

const usual = periods(TOLD, 10);
/** HBM is twice as slow for the second period: a step up is due. */
const troubled = looked(period(usual, SLOW), SLOW);

/** Two steps away from home, and well again for so long that a step back is due. */
const recovered = ((): TuningState => {
  let told = periods(usual, 3, SLOW);
  for (let i = 0; i < 20; i += 1) {
    const state = looked(told, WELL);
    if (stepOf(state)?.kind === 'back') return state;
    told = period(told, WELL);
  }
  throw new Error('it never came back');
})();

function stepOf(state: TuningState): TuningStepped | undefined {
  return concludeTuning(state).find((event) => event.type === 'tuning-stepped');
}

function withConstant(
  state: TuningState,
  fields: Partial<ConstantState>,
  name = 'floor',
  from = 'floor',
): TuningState {
  return { ...state, constants: { ...state.constants, [name]: { ...constantOf(state, from), ...fields } } };
}

function seeing(
  state: TuningState,
  change: {
    effect?: Partial<Effect>;
    domains?: Record<string, Partial<DomainObservation>>;
    more?: Effect[];
    values?: Record<string, number>;
  },
): TuningState {
  const { last } = state;
  if (last === undefined) throw new Error('nothing was seen');
  const { effect = {}, domains = {}, more = [], values = {} } = change;
  const known = last.domains[HBM];
  if (known === undefined) throw new Error('the domain was not seen');
  const changed = Object.entries(domains).map(([name, fields]) => [
    name,
    { ...(last.domains[name] ?? known), ...fields },
  ]);
  return {
    ...state,
    last: {
      ...last,
      values: { ...last.values, ...values },
      domains: { ...last.domains, ...(Object.fromEntries(changed) as typeof last.domains) },
      effects: [...last.effects.map((each) => ({ ...each, ...effect })), ...more],
    },
  };
}

const losing = (share: number): Partial<Effect> => ({ losing: [{ domain: HBM, share }] });

/** The same trouble seen through another constant, that would move so much of it. */
function throughAnother(state: TuningState, name: string, share: number): TuningState {
  const up = state.last?.effects.find(({ direction }) => direction === 'up');
  if (up === undefined) throw new Error('there is no step up');
  const more = [{ ...up, ...losing(share), name }];
  return withConstant(seeing(state, { more, values: { [name]: 7 } }), {}, name);
}

describe('a step off a domain that degrades', () => {
  it('is due', () => {
    expect(stepOf(troubled)).toMatchObject({ kind: 'away', name: 'floor', direction: 'up', domain: HBM });
  });

  const evidence = Object.values(constantOf(troubled, 'floor').suspicions)[0];
  const nothingShown = startRatioTest(WORSE.null, WORSE.alternatives);
  const unsure = {
    [`up ${HBM}`]: {
      ...evidence,
      periods: 9,
      metrics: [],
      tests: { queue: nothingShown, kernel: nothingShown, endToEnd: nothingShown },
    },
  };

  it.each<[string, TuningState, boolean]>([
    [
      'after two steps that did not help, where the gap is two thirds of a step wider',
      withConstant(troubled, { failures: 2 }),
      true,
    ],
    ['after three, which take a wider gap', withConstant(troubled, { failures: 3 }), false],
    [
      'on evidence that shows nothing, for however long',
      withConstant(troubled, { suspicions: unsure }),
      false,
    ],
    ['that takes half of the requests', seeing(troubled, { effect: losing(0.5) }), true],
    ['that takes more than half', seeing(troubled, { effect: losing(0.51) }), false],
    ['that leaves 403 requests', seeing(troubled, { domains: { [HBM]: { requests: 480 } } }), true],
    [
      'that leaves 395, too few to see it recover',
      seeing(troubled, { domains: { [HBM]: { requests: 470 } } }),
      false,
    ],
    ['against the last one, when that has had its time', turned(0), true],
    ['against the last one, before', turned(1), false],
    ['before the end of a back-off', withConstant(troubled, { blockedUntil: troubled.period + 1 }), false],
    ['at the end of a back-off', withConstant(troubled, { blockedUntil: troubled.period }), true],
    ['in a period that had one', { ...troubled, steppedPeriod: troubled.period }, false],
  ])('%s', (_, state, isTaken) => {
    expect(stepOf(state) !== undefined).toBe(isTaken);
  });

  function turned(periodsLeft: number): TuningState {
    return withConstant(troubled, {
      lastStep: { period: troubled.period - 1, direction: 'down', isAway: true },
      turnUntil: troubled.period + periodsLeft,
    });
  }

  it('to another memory of the same pool asks nothing more of the pool', () => {
    const within = (pool: string): TuningState =>
      seeing(troubled, {
        effect: { ...losing(0.2), gaining: [{ domain: L2, share: 0.1 }] },
        domains: { [L2]: { pool, utilisation: 0.79 }, [HBM]: { utilisation: 0.79 } },
      });
    expect([stepOf(within('a100')) !== undefined, stepOf(within('v100'))]).toEqual([true, undefined]);
  });

  it.each([
    ['alone', 0.1, 'floor'],
    ['more', 0.3, 'another'],
  ])('is that of the constant which moves the most: another that moves %s', (_, share, name) => {
    expect(stepOf(throughAnother(troubled, 'another', share))?.name).toBe(name);
  });
});

describe('a step back', () => {
  it('is to the exact value before, whatever the arithmetic of steps makes of it', () => {
    const { trail } = constantOf(recovered, 'floor');
    const odd = trail.map((step) => ({ ...step, from: 99.5 }));
    expect(stepOf(withConstant(recovered, { trail: odd }))).toMatchObject({ kind: 'back', to: 99.5 });
  });

  it('is not taken where it would break the policy', () => {
    expect(stepOf(seeing(recovered, { effect: { blocked: 'a golden test fails' } }))).toBeUndefined();
  });

  it('is tried after 20 quiet periods, not after 19', () => {
    const quiet = (quietPeriods: number): TuningState =>
      withConstant(recovered, { recovery: undefined, quietPeriods });
    expect([stepOf(quiet(19)), stepOf(quiet(20))?.kind]).toEqual([undefined, 'probe']);
    const { last } = quiet(20);
    const ramp = { ...quiet(20), last: last && { ...last, rollout: 'ramp' as const } };
    expect(stepOf(ramp)).toBeUndefined();
  });
});

describe('what was gathered', () => {
  it('is forgotten while two policies share the traffic', () => {
    const paused = period(period(usual, SLOW), { ...SLOW, rollout: 'canary' });
    expect(stepOf(looked(paused, SLOW))).toBeUndefined();
    expect(stepOf(looked(period(paused, SLOW), SLOW))).toBeDefined();
  });
});
