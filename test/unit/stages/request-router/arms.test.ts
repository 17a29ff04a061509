import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeavyKeys } from '../../../../src/core/rollout/heavy-keys.ts';
import type { ActiveCanary } from '../../../../src/stages/request-router/active-policy.ts';
import { Arms } from '../../../../src/stages/request-router/arms.ts';
import { decisionOf } from '../../../../src/stages/request-router/deciding-policy.ts';
import { routable } from '../records.fixture.ts';
import { canary, policy } from './router.fixture.ts';

const arms = (fields: Partial<ActiveCanary> = {}): Arms =>
  new Arms(policy(), canary(fields), new HeavyKeys());
const keyed = (key: string, requestId = `request of ${key}`) => routable({ bucketKey: key, requestId });
const KEYS = Array.from({ length: 2_000 }, (_, n) => `user-${n}`);

describe('without a canary', () => {
  it('the stable policy decides everything, and everything is analysed', () => {
    const alone = new Arms(policy(), undefined, new HeavyKeys());
    for (const key of KEYS.slice(0, 100))
      expect(alone.decide(keyed(key))).toMatchObject({ policy: alone.stable, arm: 'STABLE', analysed: true });
  });
});

describe('a canary', () => {
  it('decides by its own policy, and the decision says so', () => {
    const decided = arms({ percent: 100, unit: 'requestId' }).decide(keyed(''));
    expect(decisionOf(decided)).toEqual({
      digest: 'sha256:2',
      name: 'test',
      version: 2,
      epoch: 2,
      leaf: 'all',
      arm: 'CANARY',
      analysed: true,
    });
  });

  it.each([
    { percent: 0, low: 0, high: 0 },
    { percent: 5, low: 0.035, high: 0.065 },
    { percent: 50, low: 0.46, high: 0.54 },
    { percent: 100, low: 1, high: 1 },
  ])('of $percent % decides that share of the keys', ({ percent, low, high }) => {
    const share = arms({ percent });
    const canaries = KEYS.filter((key) => share.decide(keyed(key)).arm === 'CANARY').length / KEYS.length;
    expect(canaries).toBeGreaterThanOrEqual(low);
    expect(canaries).toBeLessThanOrEqual(high);
  });

  it('in shadow decides nothing, whatever its percent', () => {
    const shadow = arms({ mode: 'shadow', percent: 100 });
    expect(KEYS.every((key) => shadow.decide(keyed(key)).arm === 'STABLE')).toBe(true);
  });

  it.each([
    ['no key', { bucketKey: '' }],
    ['its id in place of a key, as the extractor fills it in', { bucketKey: 'r1', requestId: 'r1' }],
  ])('never decides a request with %s, which compares with nobody and is not analysed', (_name, fields) => {
    expect(arms({ percent: 100 }).decide(routable(fields))).toMatchObject({ arm: 'STABLE', analysed: false });
    const byRequest = arms({ percent: 100, unit: 'requestId' });
    expect(byRequest.decide(routable(fields))).toMatchObject({ arm: 'CANARY', analysed: true });
  });

  it('by request decides requests without a key as well, and not all of one key alike', () => {
    const byRequest = arms({ unit: 'requestId' });
    const some = Array.from({ length: 200 }, (_, n) => byRequest.decide(keyed('', `r${n}`)).arm);
    expect(new Set(some)).toEqual(new Set(['STABLE', 'CANARY']));
    const same = Array.from({ length: 200 }, (_, n) => byRequest.decide(keyed('user-1', `r${n}`)).arm);
    expect(new Set(same)).toEqual(new Set(['STABLE', 'CANARY']));
  });

  it('keeps a key in its arm, whatever else comes, and never gives one back as it widens', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 20 }),
        fc.string({ maxLength: 8 }),
        fc.double({ min: 0, max: 100, noNaN: true }),
        fc.double({ min: 0, max: 100, noNaN: true }),
        (key, salt, a, b) => {
          const narrow = arms({ salt, percent: Math.min(a, b) });
          const wide = arms({ salt, percent: Math.max(a, b) });
          const arm = narrow.decide(keyed(key)).arm;
          expect(narrow.decide(keyed(key, 'another request')).arm).toBe(arm);
          if (arm === 'CANARY') expect(wide.decide(keyed(key)).arm).toBe('CANARY');
        },
      ),
    );
  });
});

describe('the heaviest keys', () => {
  const traffic = Array.from({ length: 4_000 }, (_, n) => (n % 2 === 0 ? 'robot' : `user-${n}`));

  it('are not analysed, in either arm', () => {
    for (const percent of [1, 100]) {
      const watched = arms({ percent });
      for (const key of traffic) watched.decide(keyed(key));
      const heavy = watched.decide(keyed('robot'));
      expect(heavy).toMatchObject({ arm: percent === 100 ? 'CANARY' : 'STABLE', analysed: false });
      expect(watched.decide(keyed('somebody new')).analysed).toBe(true);
    }
  });

  it('are known by the time that the canary begins, from the shadow', () => {
    const heavyKeys = new HeavyKeys();
    const shadow = new Arms(policy(), canary({ mode: 'shadow' }), heavyKeys);
    for (const key of traffic) expect(shadow.decide(keyed(key)).analysed).toBe(true);
    const acting = new Arms(policy(), canary(), heavyKeys);
    expect(acting.decide(keyed('robot')).analysed).toBe(false);
  });

  it('count like all others where each request draws its own arm', () => {
    const watched = arms({ unit: 'requestId' });
    for (const [n, key] of traffic.entries()) expect(watched.decide(keyed(key, `r${n}`)).analysed).toBe(true);
  });
});
