import { describe, expect, it } from 'vitest';
import type { SignalVector } from '../../../../src/core/policy/explain.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { effectsOf } from '../../../../src/core/tuning/effects.ts';

function policy({ tests = '', tuned = '' } = {}) {
  return parsePolicy(`apiVersion: millrace/v1
kind: RoutingPolicy
name: tuned
version: 1
signals: {activationBytes: int, surface: string}
tree:
  - id: large
    when: 'activationBytes > tune("hbm-floor", 100, min: 50, max: 400, step: 100%)'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - id: ads
    when: 'surface == "ads"'
    to: {accelerator: mtia, kernel: dense, memory: l2}
  - id: small
    to: {accelerator: gpu-a100, kernel: dense, memory: l2}
${tuned}
tests:
  - {signals: {activationBytes: 1000}, leaf: large}
  - {signals: {surface: ads}, leaf: ads}
  - {signals: {}, leaf: small}
${tests}`);
}

/** 40, 80, 120 … 800. */
const samples: SignalVector[] = Array.from({ length: 20 }, (_, index) => ({
  signals: Float64Array.of(40 * (index + 1)),
  context: index % 2 === 0 ? { surface: 'feed' } : { surface: 'ads' },
}));

describe('effectsOf', () => {
  it('tells who loses and gains what by one step, either way, pool by pool', () => {
    const [up, down, ...rest] = effectsOf(policy(), new Map(), REFERENCE_FLEET, samples);
    expect(rest).toEqual([]);
    // Above 100 are 18 of 20; above 200 are 15: of the 3 between, 120 and 200 are odd and go to small, 160 goes to ads.
    expect(up).toEqual({
      name: 'hbm-floor',
      direction: 'up',
      to: 200,
      losing: ['a100/hbm', 'a100-spot/hbm'].map((domain) => ({ domain, share: 3 / 18 })),
      gaining: [
        { domain: 'a100/l2', share: 2 / 20 },
        { domain: 'a100-spot/l2', share: 2 / 20 },
        { domain: 'mtia/l2', share: 1 / 20 },
        { domain: 'mtia-spot/l2', share: 1 / 20 },
      ],
      blocked: undefined,
    });
    expect(down).toMatchObject({
      direction: 'down',
      to: 50,
      losing: [{ domain: 'mtia/l2', share: 1 }, { domain: 'mtia-spot/l2' }],
      gaining: [{ domain: 'a100/hbm', share: 1 / 20 }, { domain: 'a100-spot/hbm' }],
    });
  });

  it('goes from the value in force, and not past a bound', () => {
    expect(
      effectsOf(policy({ tuned: 'tuned: {hbm-floor: 400}' }), new Map(), REFERENCE_FLEET, samples),
    ).toMatchObject([{ direction: 'down', to: 200 }]);
    expect(effectsOf(policy(), new Map([['hbm-floor', 50]]), REFERENCE_FLEET, samples)).toMatchObject([
      { direction: 'up', to: 100 },
    ]);
  });

  it('blocks a step that a golden test forbids', () => {
    const tests = '  - {signals: {activationBytes: 150}, leaf: large}';
    const [up, down] = effectsOf(policy({ tests }), new Map(), REFERENCE_FLEET, samples);
    expect(up?.blocked).toBe(
      'tests[3]: a golden test fails: the policy takes it to the leaf small, the test says large',
    );
    expect(down?.blocked).toBeUndefined();
  });

  it('blocks none for what is only doubtful', () => {
    const doubtful = policy({ tests: '' });
    const untested = { ...doubtful, tests: doubtful.tests.slice(0, 1) };
    for (const { blocked } of effectsOf(untested, new Map(), REFERENCE_FLEET, samples))
      expect(blocked).toBeUndefined();
  });

  it('moves nothing without requests', () => {
    expect(effectsOf(policy(), new Map(), REFERENCE_FLEET, [])).toMatchObject([
      { losing: [], gaining: [] },
      { losing: [], gaining: [] },
    ]);
  });

  it('has nothing to tell of a policy without tunable constants', () => {
    const plain = parsePolicy(
      'apiVersion: millrace/v1\nkind: RoutingPolicy\nname: plain\nversion: 1\nsignals: {}\ntree: [{id: all, to: {accelerator: cpu, kernel: dense}}]\n',
    );
    expect(effectsOf(plain, new Map(), REFERENCE_FLEET, samples)).toEqual([]);
  });
});
