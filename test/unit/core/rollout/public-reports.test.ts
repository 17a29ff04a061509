import { describe, expect, it } from 'vitest';
import { armOf } from '../../../../src/core/rollout/bucket.ts';
import { pointerOf } from '../../../../src/core/rollout/rollout-state.ts';
import {
  abort,
  arm,
  following,
  given,
  healthy,
  healthyLook,
  inStage,
  look,
  NO_REQUESTS,
  policy,
  publish,
  rolloutOf,
  scopeOf,
  shadow,
  type Told,
} from './rollout.fixture.ts';

/** Mistakes that other tools' users reported, by their symptom. */
describe('public reports', () => {
  it.each([0, 1, 2, 3])('flagger#1011: the traffic stops, and stage %i advances all the same', (stage) => {
    const silent = { stable: NO_REQUESTS, canary: NO_REQUESTS, shadow: undefined };
    const told = healthy(healthy(inStage(stage, { autoPromote: true }), 2), 60, silent);
    expect(rolloutOf(told).stage).toBe(stage);
    expect(rolloutOf(told).hold).toBeDefined();
  });

  it('flagger#1011: the canary’s traffic alone stops', () => {
    const told = healthy(healthy(inStage(1, { autoPromote: true }), 2), 10, { canary: NO_REQUESTS });
    expect(rolloutOf(told)).toMatchObject({ stage: 1, hold: { reasons: [{ code: 'statistics' }] } });
  });

  it('flagger#30: a new revision inherits the analysis of the one before', () => {
    const before = healthy(inStage(1, { autoPromote: true }), 2);
    const told = following(before, look({ ...healthyLook(before), fingerprint: 'build-2' }));
    expect(told.log.at(-1)).toMatchObject({ type: 'stage-restarted', fingerprint: 'build-2' });
    expect(rolloutOf(told)).toMatchObject({ stage: 1, observedMs: 0, evidence: { windows: 0 } });
    const two = healthy(told, 2, { fingerprint: 'build-2' });
    expect(rolloutOf(two)).toMatchObject({ stage: 1, evidence: { windows: 2 } });
    expect(rolloutOf(healthy(two, 1, { fingerprint: 'build-2' })).stage).toBe(2);
  });

  it('flagger#30: nor does the next stage, or the next rollout of the same version', () => {
    expect(rolloutOf(inStage(2)).evidence).toMatchObject({ percent: 25, windows: 0 });
    const again = following(healthy(inStage(1), 3), abort());
    expect(scopeOf(again).rollout).toBeUndefined();
  });

  it('argo-rollouts#4841: an abort leaves weight on the canary', () => {
    const told = following(inStage(3), abort());
    const pointer = pointerOf(scopeOf(told));
    expect(pointer).toMatchObject({ stable: policy(1), canary: undefined });
    const percent = pointer?.canary?.percent ?? 0;
    const unit = { inclusionSalt: 'a', armSalt: 'b', percent };
    expect(new Set(Array.from({ length: 1_000 }, (_, key) => armOf(unit, `u${key}`)))).toEqual(
      new Set(['STABLE']),
    );
  });

  it('argo-rollouts#1292: an abort without a rollout hurts the stable version', () => {
    const before = given(publish(1));
    const told = following(before, abort());
    expect(told.log.at(-1)).toMatchObject({
      type: 'command-refused',
      reason: expect.stringMatching(/no rollout runs .*; the live version stays as it is/),
    });
    expect(scopeOf(told)).toEqual(scopeOf(before));
  });

  const seeing = (told: Told, canary: ReturnType<typeof arm>): Told =>
    following(told, look({ ...healthyLook(told), canary }));

  it('spinnaker#5622: errors against a control that has none pass', () => {
    const told = seeing(inStage(1, { autoPromote: true }), arm(5_000, { errors: 60 }));
    expect(scopeOf(told)).toMatchObject({ rollout: undefined, ended: { outcome: 'rolled-back' } });
  });

  it('kayenta#426: few and far between, errors pass', () => {
    let told = inStage(1, { autoPromote: true });
    for (let i = 0; i < 40 && scopeOf(told).rollout !== undefined; i += 1) {
      told = seeing(told, arm(5_000, { errors: i % 2 === 0 ? 0 : 16 }));
      if (scopeOf(told).rollout !== undefined) expect(rolloutOf(told).stage).toBe(1);
    }
    expect(scopeOf(told).ended?.outcome).toBe('rolled-back');
  });

  it('kayenta#780: the same median with a wider spread passes', () => {
    const told = seeing(inStage(1, { autoPromote: true }), arm(5_000, { over: [2_500, 500, 250] }));
    expect(scopeOf(told)).toMatchObject({
      rollout: undefined,
      ended: { reason: expect.stringMatching(/^over p9/) },
    });
  });

  it('nothing is promoted for being inconclusive, however long it lasts', () => {
    const few = { stable: arm(95), canary: arm(5), shadow: shadow() };
    const told = healthy(inStage(1, { autoPromote: true }), 200, few);
    expect(rolloutOf(told)).toMatchObject({ stage: 1, hold: undefined });
    expect(rolloutOf(told).observedMs).toBe(2_000_000);
  });
});
