import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { hindsightBound } from '../../../../src/simulation/overload/hindsight-bound.ts';
import { POOL_POLICIES } from '../../../../src/simulation/overload/policies.ts';
import { sumSeconds } from '../../../../src/simulation/overload/pool-book.ts';
import type { CreatePolicy } from '../../../../src/simulation/overload/pool-policy.ts';
import type { Attempt, PoolRequest } from '../../../../src/simulation/overload/pool-request.ts';
import { simulatePool } from '../../../../src/simulation/overload/simulate-pool.ts';

const SCENARIO = { servers: 4, valueSigma: 0.5, noiseSigma: 0.1, slaMs: 100, endMs: 5_000, retries: 0 };

const all = Object.entries(POOL_POLICIES);

describe('a simulated pool', () => {
  it.each(all)('keeps no more servers busy than there are, and pays once for an answer: %s', (_, create) => {
    for (const retries of [0, 3]) {
      const scenario = { ...SCENARIO, retries, steps: [{ fromMs: 0, load: 2 }] };
      const { seconds } = simulatePool(scenario, create, seededRandom(1));
      const sum = sumSeconds(seconds, 0, seconds.length);
      expect(sum.answered).toBeLessThanOrEqual(sum.sent);
      expect(sum.usefulMs).toBeLessThanOrEqual(sum.busyMs);
      expect(sum.busyMs).toBeLessThanOrEqual(4 * 5_000 + 500);
    }
  });

  it.each(all)('answers everything in time at a third of the capacity: %s', (_, create) => {
    const scenario = { ...SCENARIO, steps: [{ fromMs: 0, load: 0.33 }] };
    const sum = sumSeconds(simulatePool(scenario, create, seededRandom(1)).seconds, 0, 4);
    expect(sum.answered / sum.sent).toBeGreaterThan(0.999);
  });

  it.each(all)('gives the same for a seed: %s', (_, create) => {
    const scenario = { ...SCENARIO, retries: 3, steps: [{ fromMs: 0, load: 1.5 }] };
    const run = () => simulatePool(scenario, create, seededRandom(7)).seconds;
    expect(run()).toEqual(run());
  });

  it.each([
    ['refused', false],
    ['let in and then dropped', true],
  ])('has clients send again three times what is %s, within 20 ms each', (_, isLetIn) => {
    const sendings = new Map<PoolRequest, number[]>();
    const answersNothing: CreatePolicy = ({ onDrop }) => {
      const queue: Attempt[] = [];
      return {
        tickMs: 1_000,
        arrive: (attempt, nowMs) => {
          sendings.set(attempt.request, [...(sendings.get(attempt.request) ?? []), nowMs]);
          if (isLetIn) queue.push(attempt);
          return isLetIn;
        },
        next: () => {
          for (const attempt of queue.splice(0)) onDrop(attempt);
          return undefined;
        },
        complete: () => {},
        tick: () => {},
        limit: () => 0,
      };
    };
    const scenario = { ...SCENARIO, retries: 3, steps: [{ fromMs: 0, load: 0.5 }] };
    simulatePool(scenario, answersNothing, seededRandom(1));
    const early = [...sendings].filter(([{ sentMs }]) => sentMs < 4_000);
    expect(early.length).toBeGreaterThan(500);
    for (const [, times] of early) {
      expect(times.length).toBe(4);
      for (const [index, ms] of times.slice(1).entries())
        expect(ms - (times[index] ?? 0)).toBeLessThanOrEqual(20);
    }
  });

  it('has clients send again once for an attempt that they heard was dropped, and not when its time ends too', () => {
    const sendings = new Map<PoolRequest, number[]>();
    const dropsFirst: CreatePolicy = ({ onDrop }) => {
      const policy = POOL_POLICIES['no control']({ servers: 4, slaMs: 100, onDrop });
      const firsts: Attempt[] = [];
      return {
        ...policy,
        arrive: (attempt, nowMs) => {
          const times = sendings.get(attempt.request) ?? [];
          if (times.length === 0) firsts.push(attempt);
          sendings.set(attempt.request, [...times, nowMs]);
          return true;
        },
        next: () => {
          for (const attempt of firsts.splice(0)) onDrop(attempt);
          return undefined;
        },
      };
    };
    const scenario = { ...SCENARIO, retries: 3, steps: [{ fromMs: 0, load: 0.5 }] };
    simulatePool(scenario, dropsFirst, seededRandom(1));
    for (const [{ sentMs }, times] of sendings) {
      if (sentMs > 4_000) continue;
      // The first is dropped at once; each of the others takes the whole SLA.
      expect(times.length).toBe(4);
      expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThanOrEqual(100);
    }
  });

  it('has clients send again what is late, once for each attempt, though it is still computed', () => {
    let attempts = 0;
    const waiting: CreatePolicy = (pool) => {
      const policy = POOL_POLICIES['no control'](pool);
      return {
        ...policy,
        arrive: (attempt, nowMs) => {
          attempts += 1;
          return policy.arrive(attempt, nowMs);
        },
      };
    };
    const scenario = {
      ...SCENARIO,
      retries: 3,
      steps: [
        { fromMs: 0, load: 3 },
        { fromMs: 2_000, load: 1e-9 },
      ],
    };
    const { seconds } = simulatePool(scenario, waiting, seededRandom(1));
    const { sent } = sumSeconds(seconds, 0, 2);
    expect(attempts / sent).toBeGreaterThan(3);
    expect(attempts / sent).toBeLessThanOrEqual(4);
  });
});

describe('the bound of hindsight', () => {
  const request = (base: [number, number], extra: [number, number], noise = 1): PoolRequest => ({
    sentMs: 0,
    user: 0,
    base: { costMs: base[0], value: base[1] },
    extras: [{ costMs: extra[0], value: extra[1] }],
    noise,
    densityTier: 0,
    attempts: 0,
    isAnswered: false,
  });
  const both = [request([10, 10], [10, 5]), request([10, 2], [10, 1])];

  it.each([
    ['the densest parts, the last one in part', 15, 'one-price', 12.5],
    ['base work alone while it fills the capacity', 15, 'strict', 11],
    ['then the densest extras', 25, 'strict', 14.5],
    ['all there is', 100, 'one-price', 18],
  ] as const)('takes %s', (_, capacityMs, order, value) => {
    expect(hindsightBound(both, capacityMs, order)).toBeCloseTo(value, 10);
  });

  it('reckons with real service times', () => {
    expect(hindsightBound([request([10, 10], [10, 5], 2)], 20)).toBeCloseTo(10, 10);
  });
});
