import { describe, expect, it } from 'vitest';
import { evolve } from '../../../../src/core/control/controller-state.ts';
import { startEvidence } from '../../../../src/core/rollout/evidence.ts';
import type { Observation, ShadowObservation } from '../../../../src/core/rollout/observation.ts';
import { NO_WORKER_UTILISATION } from '../../../../src/core/rollout/projection.ts';
import { holdReasons } from '../../../../src/core/rollout/readiness.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import type { HoldCode } from '../../../../src/core/rollout/rollout-event.ts';
import { pointerOf } from '../../../../src/core/rollout/rollout-state.ts';
import { DEFAULT_LIMITS, type RolloutTerms } from '../../../../src/core/rollout/rollout-terms.ts';
import {
  arm,
  following,
  healthy,
  healthyLook,
  hold,
  inShadow,
  inStage,
  LOOK_MS,
  look,
  NO_REQUESTS,
  observation,
  policy,
  rolloutOf,
  START_MS,
  scopeOf,
  shadow,
  start,
  type Told,
  tuneTo,
  when,
} from './rollout.fixture.ts';

/** The next look of a healthy stage, changed. */
const seeing = (told: Told, change: Partial<Observation>): Told =>
  following(told, look({ ...healthyLook(told), ...change }));

const shadowed = (told: Told, change: Partial<ShadowObservation>): Told =>
  seeing(told, { shadow: shadow(change) });

const heldFor = (told: Told): readonly HoldCode[] =>
  rolloutOf(told).hold?.reasons.map(({ code }) => code) ?? [];

/** Eight looks are more than the shadow's dwell time. */
const shadowRuns = (change: Partial<ShadowObservation>, terms: Partial<RolloutTerms> = {}): Told =>
  healthy(inShadow(terms), 8, { shadow: shadow(change) });

describe('the limits of a rollout', () => {
  it('are those that the evidence of each stage is judged by', () => {
    const limits = { ...DEFAULT_LIMITS, toleratedRate: 0.004, silenceMsMax: 20_000 };
    const { evidence } = rolloutOf(inStage(1, { limits }));
    expect(evidence?.silenceMsMax).toBe(20_000);
    expect(evidence).toEqual(startEvidence({ percent: 5, toleratedRate: 0.004, silenceMsMax: 20_000 }));
    expect(evidence).not.toEqual(startEvidence({ percent: 5, silenceMsMax: 20_000 }));
    const silent = healthy(inStage(1, { limits }), 2, { canary: arm(0), stable: arm(0) });
    expect(rolloutOf(silent).hold?.reasons.map(({ code }) => code)).toEqual(['statistics']);
  });
});

describe('the shadow passes', () => {
  it.each<[what: string, looks: number, requests: number, stage: number]>([
    ['not before its dwell time', 2, 20_000, 0],
    ['not on fewer than 10 000 requests', 9, 1_111, 0],
    ['when it has both', 3, 5_000, 1],
    ['on exactly 10 000 requests', 10, 1_000, 1],
  ])('%s', (_what, looks, requests, stage) => {
    const leaves = { sparse: requests / 2, rest: requests / 2 };
    const told = healthy(inShadow({ autoPromote: true }), looks, {
      shadow: shadow({ requests, changed: 0, leaves }),
    });
    expect(rolloutOf(told).stage).toBe(stage);
  });

  it('and waits for a person where nobody said that it goes on by itself', () => {
    const told = healthy(inShadow(), 20);
    expect(rolloutOf(told)).toMatchObject({ stage: 0, hold: undefined });
  });
});

describe('the shadow pauses, each time with its own reason', () => {
  it.each<[code: HoldCode, text: RegExp, change: Partial<ShadowObservation>, terms?: Partial<RolloutTerms>]>([
    ['latency-apart', /1\.02 % of the requests/, { latencyApart: 51 }],
    ['exceptions', /threw 8 times/, { exceptions: 1 }],
    ['routing-cost', /101 µs/, { costUsP99: 101 }],
    [
      'projected-utilisation',
      /: gpu-1 has no live worker for its requests$/,
      { projectedUtilisation: { 'gpu-1': NO_WORKER_UTILISATION } },
    ],
    ['projected-utilisation', /gpu-1 81 %/, { projectedUtilisation: { 'gpu-1': 0.81, cpu: 0.8 } }],
    ['leaf-not-hit', /fewer than 30 times: rest \(24\)/, { leaves: { sparse: 4_997, rest: 3 } }],
    ['leaf-not-hit', /rest \(0\)/, { leaves: { sparse: 5_000 } }],
    [
      'diff-contradicted',
      /12 % of the requests change, declared are 20 % to 30 %/,
      {},
      { expect: { changedShare: [0.2, 0.3], leaves: undefined } },
    ],
    [
      'diff-contradicted',
      /8 changed requests end in other leaves than sparse/,
      { changedOutsideDeclared: 1 },
      { expect: { changedShare: undefined, leaves: ['sparse'] } },
    ],
    ['no-data', /no request was decided in shadow for 80 s/, { requests: 0, changed: 0, leaves: {} }],
  ])('%s: %s', (code, text, change, terms) => {
    const told = shadowRuns(change, terms);
    expect(rolloutOf(told).hold?.reasons.map((reason) => reason.code)).toEqual([code]);
    expect(rolloutOf(told).stage).toBe(0);
    expect(holdReasons(rolloutOf(told))).toMatchObject([{ code, text: expect.stringMatching(text) }]);
  });

  it.each<[what: string, change: Partial<ShadowObservation>, terms?: Partial<RolloutTerms>]>([
    ['1 % of the latencies apart', { latencyApart: 50 }],
    ['a cost of 100 µs', { costUsP99: 100 }],
    ['a projected utilisation of 80 %', { projectedUtilisation: { 'gpu-1': 0.8 } }],
    ['a rare leaf that is waived', { leaves: { sparse: 4_999, rest: 1 } }, { waivedLeaves: ['rest'] }],
    ['a declared share', {}, { expect: { changedShare: [0.12, 0.12], leaves: ['sparse'] } }],
    [
      'changes anywhere where no leaf is declared',
      { changedOutsideDeclared: 9 },
      { expect: { changedShare: undefined, leaves: undefined } },
    ],
  ])('but not for %s', (_what, change, terms) => {
    expect(heldFor(shadowRuns(change, terms))).toEqual([]);
    const passed = healthy(inShadow({ ...terms, autoPromote: true }), 3, { shadow: shadow(change) });
    expect(rolloutOf(passed).stage).toBe(1);
  });

  it('and shares are not judged on a handful of requests', () => {
    const few = shadow({ requests: 500, latencyApart: 400, changed: 0, leaves: {} });
    const terms = { expect: { changedShare: [0.2, 0.3] as const, leaves: undefined } };
    expect(heldFor(seeing(inShadow(terms), { shadow: few }))).toEqual([]);
    expect(heldFor(healthy(inShadow(terms), 2, { shadow: few }))).toEqual([
      'latency-apart',
      'diff-contradicted',
    ]);
  });

  it('and goes on when the reason is gone; its time on hold does not count', () => {
    const told = shadowed(inShadow(), { costUsP99: 200 });
    const still = shadowed(shadowed(told, { costUsP99: 200 }), { costUsP99: 200 });
    expect(rolloutOf(still).observedMs).toBe(LOOK_MS);
    const gone = shadowed(still, {});
    expect(gone.log.at(-1)).toMatchObject({ type: 'rollout-resumed', commandId: '' });
    expect(rolloutOf(shadowed(gone, {})).observedMs).toBe(2 * LOOK_MS);
  });

  it('and an exception stands, also where a person ends the hold', () => {
    const told = following(shadowed(inShadow(), { exceptions: 1 }), start(2));
    expect(told.log.slice(-2).map(({ type }) => type)).toEqual(['rollout-resumed', 'rollout-held']);
    expect(heldFor(shadowed(told, {}))).toEqual(['exceptions']);
  });

  it('and a rare leaf can be waived while it is on hold for it', () => {
    const rare = { leaves: { sparse: 5_000 } };
    const told = following(shadowRuns(rare), start(2, { waivedLeaves: ['rest'] }));
    expect(heldFor(shadowed(told, rare))).toEqual([]);
  });
});

describe('canary and ramp', () => {
  it.each([1, 2, 3])('stage %i goes on with its dwell time and a promotable verdict', (stage) => {
    const told = inStage(stage, { autoPromote: true });
    expect(rolloutOf(healthy(told, 2)).stage).toBe(stage);
    const then = healthy(told, 3);
    expect(then.log.at(-1)).toMatchObject({
      type: 'rollout-advanced',
      to: stage === 3 ? 'live' : stage + 1,
      overridden: [],
      commandId: '',
      actor: 'rollout',
    });
  });

  it('harm rolls back by itself, at a higher epoch, also on hold', () => {
    const told = inStage(1);
    const harm = { canary: arm(5_000, { errors: 200 }) };
    for (const before of [told, healthy(told, 3, { refusals: ['router-1: no'] })]) {
      const then = seeing(before, harm);
      expect(then.log.at(-1)).toMatchObject({
        type: 'rollout-rolled-back',
        reason: expect.stringMatching(/^errors: \d %/),
        epoch: scopeOf(before).epoch + 1,
        commandId: '',
      });
      expect(pointerOf(scopeOf(then))).toMatchObject({ stable: policy(1), canary: undefined });
    }
  });

  it('harm is a hold where nobody wants it rolled back by itself', () => {
    const told = seeing(inStage(1, { autoRollback: false }), { canary: arm(5_000, { errors: 200 }) });
    expect(heldFor(told)).toEqual(['harm']);
  });

  it('a skewed exposure is a hold', () => {
    const told = healthy(inStage(1), 6, { canary: arm(95_000) });
    expect(heldFor(told)).toEqual(['statistics']);
  });
});

describe('guardrails, in any stage', () => {
  const pools = (utilisation: number, queueMsP99: number) => ({
    pools: { 'gpu-1': { utilisation, queueMsP99 } },
  });

  it.each<[code: HoldCode, change: Partial<Observation>, looks: number]>([
    ['pool-queue', pools(0.5, 16.1), 3],
    ['pool-utilisation', pools(0.81, 8), 3],
    ['model-not-ready', { modelsNotReady: ['w1 (pool cpu) refuses ranker@3: no'] }, 1],
    ['router-refusal', { refusals: ['router-1: its fleet lacks the accelerator'] }, 1],
  ])('%s is a hold', (code, change, looks) => {
    for (const stage of [0, 1, 3]) {
      const told = healthy(inStage(stage), 1);
      expect(heldFor(healthy(told, looks - 1, change))).toEqual([]);
      const held = healthy(told, looks, change);
      expect(heldFor(held)).toEqual([code]);
      expect(heldFor(healthy(held, 1))).toEqual([]);
    }
  });

  it.each<[what: string, change: Partial<Observation>]>([
    ['a queue up to twice as long', pools(0.5, 16)],
    ['a busier pool below 80 %', pools(0.8, 8)],
    ['a pool that is new', { pools: { 'gpu-2': { utilisation: 0.79, queueMsP99: 9 } } }],
    ['no pool at all', { pools: {} }],
  ])('%s is none', (_what, change) => {
    expect(heldFor(healthy(inStage(1), 6, change))).toEqual([]);
  });

  it('a queue that is long from the stage’s first look on is measured by what it was before', () => {
    const told = inStage(1);
    expect(heldFor(healthy(told, 3, pools(0.5, 30)))).toEqual(['pool-queue']);
  });

  it('a queue is measured by what it was when the stage began, not by what it crept up to', () => {
    let told = healthy(inStage(1), 1);
    for (const queueMsP99 of [12, 14, 16, 18, 20, 22]) told = healthy(told, 1, pools(0.5, queueMsP99));
    expect(heldFor(told)).toEqual(['pool-queue']);
  });

  it('a queue is measured against the first look with work, where the pools were idle when the stage began', () => {
    for (const idle of [inStage(0), healthy(inStage(0), 3, pools(0, 0))]) {
      const told = healthy(idle, 4, pools(0.3, 200));
      expect(heldFor(told)).toEqual([]);
      expect(heldFor(healthy(told, 3, pools(0.3, 401)))).toEqual(['pool-queue']);
    }
  });

  it('a budget that burns in both arms alike is a hold: comparing them would not see it', () => {
    const told = healthy(inStage(1), 2, {
      stable: arm(95_000, { deadlineMissed: 1_900 }),
      canary: arm(5_000, { deadlineMissed: 100 }),
    });
    expect(heldFor(told)).toEqual(['slo-burn']);
  });

  it('the budget is judged over blocks of 1 000 requests: 2 of 100 are no burn yet', () => {
    const few = { stable: arm(95, { errors: 2 }), canary: arm(5), shadow: shadow() };
    expect(heldFor(healthy(inShadow(), 9, few))).toEqual([]);
    expect(heldFor(healthy(inShadow(), 10, few))).toEqual(['slo-burn']);
  });
});

describe('a hold', () => {
  const held = (): Told => seeing(inStage(1), { refusals: ['router-1: no'] });

  it('of more than two hours ends in a rollback', () => {
    const told = held();
    const sinceMs = rolloutOf(told).hold?.sinceMs ?? 0;
    const lookAt = (atMs: number): Told => seeing(told, { atMs, refusals: ['router-1: no'] });
    expect(rolloutOf(lookAt(sinceMs + DEFAULT_LIMITS.holdMsMax - 1)).hold?.sinceMs).toBe(sinceMs);
    expect(lookAt(sinceMs + DEFAULT_LIMITS.holdMsMax).log.at(-1)).toMatchObject({
      type: 'rollout-rolled-back',
      reason: expect.stringMatching(/on hold for too long: routers refuse the policy: router-1: no/),
    });
  });

  it('is told once, and again when its reasons change; its beginning stays', () => {
    const told = held();
    const before = told.log.length;
    const same = healthy(told, 5, { refusals: ['router-2: no'] });
    expect(same.log.slice(before).filter(({ type }) => type !== 'rollout-looked')).toEqual([]);
    const more = healthy(same, 3, {
      refusals: ['router-2: no'],
      pools: { 'gpu-1': { utilisation: 1, queueMsP99: 8 } },
    });
    expect(heldFor(more)).toEqual(['pool-utilisation', 'router-refusal']);
    expect(rolloutOf(more).hold?.sinceMs).toBe(rolloutOf(told).hold?.sinceMs);
  });

  it('that ends with a stage that passed goes on in the same look', () => {
    const passed = healthy(inStage(1, { autoPromote: true }), 2);
    const told = healthy(seeing(passed, { refusals: ['router-1: no'] }), 1);
    expect(told.log.slice(-3).map(({ type }) => type)).toEqual([
      'rollout-looked',
      'rollout-resumed',
      'rollout-advanced',
    ]);
  });
});

describe('a look that did not fit into the log', () => {
  it.each([0, 2])('holds the rollout in stage %i, until one does', (stage) => {
    const told = seeing(inStage(stage, { autoPromote: true }), {
      leftOut: 'the scores of 1000 heads were left out',
    });
    expect(rolloutOf(told).hold?.reasons).toEqual([
      { code: 'statistics', text: 'the scores of 1000 heads were left out' },
    ]);
    expect(replay(told.log).disagreements).toEqual([]);
    expect(heldFor(healthy(told, 1))).toEqual([]);
  });
});

describe('a live policy that was tuned during the shadow', () => {
  it('restarts it: what was seen was beside the one before', () => {
    const told = following(healthy(inShadow(), 2), tuneTo(3, START_MS + 25_000));
    expect(rolloutOf(told)).toMatchObject({
      stageSinceMs: START_MS + 25_000,
      observedMs: 0,
      shadow: { requests: 0 },
      fingerprint: 'build-1',
    });
  });

  it('does not end what a person holds', () => {
    expect(heldFor(following(inShadow(), hold(), tuneTo(3)))).toEqual(['person']);
  });
});

describe('another fingerprint', () => {
  it('restarts the stage at a higher epoch: what it was seen with counts for neither build', () => {
    const told = healthy(inStage(2), 2);
    const restarted = seeing(told, { fingerprint: 'build-2' });
    expect(restarted.log.at(-1)).toMatchObject({ type: 'stage-restarted', epoch: scopeOf(told).epoch + 1 });
    expect(rolloutOf(restarted)).toMatchObject({ stage: 2, observedMs: 0, evidence: { windows: 0 } });
    expect(healthy(restarted, 1, { fingerprint: 'build-2' }).log.at(-1)).toMatchObject({
      type: 'rollout-looked',
    });
  });

  it('hides no harm: a canary that drives its workers away ends', () => {
    let told = healthy(inStage(1), 2);
    const harm = { canary: arm(5_000, { errors: 4_000 }), fingerprint: 'build-1 alone' };
    told = seeing(told, harm);
    expect(told.log.at(-1)).toMatchObject({ type: 'rollout-rolled-back' });
    expect(scopeOf(told).rollout).toBeUndefined();
  });

  it('starts the shadow anew, too, and ends what the old build was held for', () => {
    const told = shadowed(inShadow(), { exceptions: 1 });
    const restarted = seeing(told, { fingerprint: 'build-2' });
    expect(rolloutOf(restarted)).toMatchObject({ hold: undefined, shadow: { requests: 0, exceptions: 0 } });
  });

  it('has guardrails measure by what the pools are under it', () => {
    const pools = { 'gpu-1': { utilisation: 0.5, queueMsP99: 30 } };
    const told = healthy(healthy(inStage(1), 1), 9, { fingerprint: 'build-2', pools });
    expect(heldFor(told)).toEqual([]);
  });

  it('is none while the observer does not know it', () => {
    const told = healthy(inStage(1), 2, { fingerprint: '' });
    expect(rolloutOf(told)).toMatchObject({ fingerprint: 'build-1', evidence: { windows: 2 } });
  });
});

describe('looks', () => {
  const told = healthy(inStage(1), 2);
  const { lastLookMs } = rolloutOf(told);

  it.each([
    ['twice', lastLookMs],
    ['out of order', lastLookMs - 1],
    ['of before the rollout', 5],
  ])('that come %s change nothing', (_name, atMs) => {
    expect(when(told, look(observation(atMs, { canary: arm(5_000, { errors: 4_000 }) })))).toEqual([]);
  });

  it('that are in the log twice are folded once', () => {
    const [event] = when(told, look(healthyLook(told)));
    if (event === undefined) throw new Error('a look gives an event');
    const once = evolve(told.state, event);
    expect(evolve(once, event)).toEqual(once);
  });

  it('without a rollout change nothing', () => {
    const ended = healthy(inStage(3, { autoPromote: true }), 4);
    expect(when(ended, look(observation(lastLookMs * 2)))).toEqual([]);
  });

  it('whose window began in the stage before do not count for this one', () => {
    const fresh = inStage(2);
    const { stageSinceMs } = rolloutOf(fresh);
    const early = following(fresh, look({ ...healthyLook(fresh), atMs: stageSinceMs + LOOK_MS / 2 }));
    expect(rolloutOf(early)).toMatchObject({ evidence: { windows: 0 }, observedMs: 0 });
    const late = following(fresh, look({ ...healthyLook(fresh), atMs: stageSinceMs + LOOK_MS - 500 }));
    expect(rolloutOf(late)).toMatchObject({ evidence: { windows: 1 } });
  });

  it('that came after the controller was away count for their own window only', () => {
    const away = seeing(told, { atMs: lastLookMs + 3_600_000 });
    expect(rolloutOf(away).observedMs).toBe(3 * LOOK_MS);
  });

  it('without a request of the candidate do not count toward the dwell time', () => {
    expect(rolloutOf(seeing(told, { canary: NO_REQUESTS })).observedMs).toBe(2 * LOOK_MS);
  });
});
