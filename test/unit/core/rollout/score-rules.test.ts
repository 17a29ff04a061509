import { describe, expect, it } from 'vitest';
import { scopeState } from '../../../../src/core/control/controller-state.ts';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import { missingOf } from '../../../../src/core/rollout/readiness.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import { DEFAULT_LIMITS } from '../../../../src/core/rollout/rollout-terms.ts';
import type { HeadScores } from '../../../../src/core/rollout/score-observation.ts';
import {
  arm,
  following,
  headScores,
  healthy,
  healthyLook,
  inShadow,
  inStage,
  LOOK_MS,
  promote,
  rolloutOf,
  SCOPE,
  scopeOf,
  type Told,
} from './rollout.fixture.ts';

/** The looks of a canary that does no harm, with these heads in each. */
function withScores(told: Told, scores: Record<string, HeadScores>, looks = 1): Told {
  return healthy(told, looks, { scores });
}

const codesOf = (told: Told): readonly string[] =>
  rolloutOf(told).hold?.reasons.map(({ code }) => code) ?? [];

describe('scores of the canary', () => {
  it('that are those of the control let it go on', () => {
    const told = withScores(inStage(1), { 'ranker/ctr': headScores(95_000, 5_000) }, 6);
    expect(rolloutOf(told).hold).toBeUndefined();
    expect(missingOf(rolloutOf(told))).toEqual([]);
  });

  it.each([
    ['spread otherwise', { lean: 0.9 }, 'score-histogram', /at most 0\.25.*ranker\/ctr 0\.265/],
    ['with another mean', { mean: 0.54 }, 'score-mean', /ranker\/ctr 0\.5 → 0\.54, 0\.4 ±/],
  ])('%s hold it, with the figures', (_, candidate, code, text) => {
    const told = withScores(inStage(1), { 'ranker/ctr': headScores(95_000, 5_000, candidate) });
    expect(codesOf(told)).toEqual([code]);
    expect(rolloutOf(told).hold?.reasons[0]?.text).toMatch(text);
  });

  it('of one head of many hold it as well', () => {
    const told = withScores(inStage(1), {
      'ranker/ctr': headScores(95_000, 5_000),
      'ranker/dwell': headScores(95_000, 5_000, { mean: 0.6 }),
    });
    expect(codesOf(told)).toEqual(['score-mean']);
    expect(rolloutOf(told).hold?.reasons[0]?.text).toMatch(/ranker\/dwell/);
    expect(rolloutOf(told).hold?.reasons[0]?.text).not.toMatch(/ctr/);
  });

  it('that are too few to tell neither hold it nor let it pass', () => {
    const told = withScores(inStage(1), { 'ranker/ctr': headScores(4_000, 48, { mean: 0.54, lean: 0.9 }) });
    expect(rolloutOf(told).hold).toBeUndefined();
    expect(missingOf(rolloutOf(told)).filter((text) => text.startsWith('not clear yet'))).toHaveLength(2);
  });

  it('add up over the stage: what one look cannot tell, twenty can', () => {
    const few = { 'ranker/ctr': headScores(2_000, 104, { mean: 0.54 }) };
    expect(codesOf(withScores(inStage(1), few))).toEqual([]);
    expect(codesOf(withScores(inStage(1), few, 20))).toContain('score-mean');
  });

  it('that nobody reports are missing: no data is never a pass', () => {
    const told = healthy(inStage(1), 6, { scores: {} });
    expect(rolloutOf(told).hold).toBeUndefined();
    expect(missingOf(rolloutOf(told))).toEqual(['no scores of both arms were compared yet']);
  });

  it.each([
    ['the canary lost', headScores(95_000, 0), /95000 of the control, none of the candidate/],
    ['the canary alone has', headScores(0, 5_000), /5000 of the candidate, none of the control/],
  ])('of a head that %s hold it', (_, lost, text) => {
    const told = withScores(inStage(1), { 'ranker/ctr': headScores(95_000, 5_000), 'ranker/dwell': lost });
    expect(codesOf(told)).toEqual(['score-heads']);
    expect(rolloutOf(told).hold?.reasons[0]?.text).toMatch(text);
  });

  it('of a rare head are no loss while so few are no surprise', () => {
    const told = withScores(inStage(1), {
      'ranker/ctr': headScores(95_000, 5_000),
      'rare/ctr': headScores(1_000, 0),
    });
    expect(codesOf(told)).toEqual([]);
  });

  it('begin anew with each stage, and where their edges do', () => {
    const moved = { 'ranker/ctr': headScores(95_000, 5_000, { mean: 0.54 }) };
    const held = withScores(inStage(1), moved);
    const promoted = following(
      held,
      promote({ overHold: true, coSigned: true, atMs: rolloutOf(held).lastLookMs + LOOK_MS }),
    );
    expect(rolloutOf(promoted).scores).toEqual({});
    const frozenAnew = headScores(9_500, 500);
    const again = withScores(held, {
      'ranker/ctr': { ...frozenAnew, edges: frozenAnew.edges.map((edge) => edge + 1) },
    });
    expect(rolloutOf(again).scores['ranker/ctr']?.edges[0]).toBe((frozenAnew.edges[0] ?? 0) + 1);
    expect(rolloutOf(again).hold).toBeUndefined();
  });

  it('in shadow hold it where the candidate has any, and are not waited for where it has none', () => {
    expect(rolloutOf(healthy(inShadow(), 4)).hold).toBeUndefined();
    expect(missingOf(rolloutOf(healthy(inShadow(), 4)))).toEqual([]);
    const told = healthy(inShadow(), 1, {
      scores: { 'ranker/ctr': headScores(95_000, 5_000, { mean: 0.6 }) },
    });
    expect(codesOf(told)).toEqual(['score-mean']);
  });

  it('may move however far where the limit is the largest', () => {
    const limits = { ...DEFAULT_LIMITS, scorePsiMax: 1_000, scoreMeanShiftMax: 1_000 };
    const far = { 'ranker/ctr': headScores(95_000, 5_000, { mean: 1_000 }) };
    const told = withScores(inStage(1, { limits }), far);
    expect(codesOf(told)).toEqual([]);
  });

  it('are bounded by the terms of the rollout', () => {
    const scores = { 'ranker/ctr': headScores(95_000, 5_000, { mean: 0.54 }) };
    const limits = { ...DEFAULT_LIMITS, scoreMeanShiftMax: 0.5 };
    expect(codesOf(withScores(inStage(1, { limits }), scores))).toEqual([]);
    const none = { ...DEFAULT_LIMITS, scorePsiMax: undefined, scoreMeanShiftMax: undefined };
    const told = healthy(inStage(1, { limits: none }), 6, { scores: {} });
    expect(missingOf(rolloutOf(told))).toEqual([]);
  });
});

describe('the log', () => {
  it('derives every hold for scores again, from the evidence in it', () => {
    const told = withScores(inStage(1), { 'ranker/ctr': headScores(95_000, 5_000, { lean: 0.9 }) });
    const log = told.log.map((event) => readControllerEvent(JSON.stringify(event)));
    const read = log.flatMap((event) => event ?? []);
    expect(read).toHaveLength(told.log.length);
    const replayed = replay(read);
    expect(replayed.disagreements).toEqual([]);
    expect(scopeState(replayed.state, SCOPE)).toEqual(scopeOf(told));
    const tampered = read.map((event) =>
      event.type === 'rollout-looked' && Object.keys(event.observation.scores).length > 0
        ? {
            ...event,
            observation: { ...event.observation, scores: { 'ranker/ctr': headScores(95_000, 5_000) } },
          }
        : event,
    );
    expect(replay(tampered).disagreements).toHaveLength(1);
  });

  it('of before there were such guardrails means what it meant', () => {
    const told = healthy(inStage(1, { autoPromote: true }), 10);
    const old = told.log.map((event) => {
      const json = JSON.parse(JSON.stringify(event)) as Record<string, Record<string, unknown>>;
      if (json['observation'] !== undefined) delete json['observation']['scores'];
      const limits = json['terms']?.['limits'] as Record<string, unknown> | undefined;
      if (limits !== undefined) {
        delete limits['scorePsiMax'];
        delete limits['scoreMeanShiftMax'];
      }
      return readControllerEvent(JSON.stringify(json));
    });
    const replayed = replay(old.flatMap((event) => event ?? []));
    expect(replayed.disagreements).toEqual([]);
    expect(replayed.pending).toEqual([]);
    expect(healthyLook(inStage(1)).canary).toEqual(arm(5_000));
  });
});
