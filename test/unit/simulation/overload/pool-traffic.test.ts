import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { PoolRequest } from '../../../../src/simulation/overload/pool-request.ts';
import { type LoadStep, PoolTraffic } from '../../../../src/simulation/overload/pool-traffic.ts';

function requests(steps: readonly LoadStep[], untilMs: number, seed = 1): PoolRequest[] {
  const traffic = new PoolTraffic(
    { servers: 10, steps, valueSigma: 0.5, noiseSigma: 0.1 },
    seededRandom(seed),
  );
  const all: PoolRequest[] = [];
  for (let next = traffic.next(); next.sentMs < untilMs; next = traffic.next()) all.push(next);
  return all;
}

const sum = (all: readonly PoolRequest[], pick: (request: PoolRequest) => number): number =>
  all.reduce((total, request) => total + pick(request), 0);
const fullMs = ({ base, extras }: PoolRequest): number =>
  extras.reduce((total, { costMs }) => total + costMs, base.costMs);

describe('the traffic of a pool', () => {
  it('asks for the load of each step, in real service time', () => {
    const all = requests(
      [
        { fromMs: 0, load: 0.5 },
        { fromMs: 20_000, load: 2 },
      ],
      40_000,
    );
    const real = (request: PoolRequest): number => fullMs(request) * request.noise;
    const [before, after] = [all.filter((r) => r.sentMs < 20_000), all.filter((r) => r.sentMs >= 20_000)];
    expect(sum(before, real) / 200_000).toBeCloseTo(0.5, 1);
    expect(sum(after, real) / 200_000).toBeCloseTo(2, 1);
  });

  it('is no less where the load is told in many steps', () => {
    const steps = Array.from({ length: 5_000 }, (_, ms) => ({ fromMs: ms, load: 0.5 }));
    expect(sum(requests(steps, 5_000), fullMs) / 50_000).toBeCloseTo(0.5, 1);
  });

  it('has a baseline of 0.6 of the cost and 0.8 of the value, and extras that fall in density', () => {
    const all = requests([{ fromMs: 0, load: 1 }], 20_000);
    expect(sum(all, ({ base }) => base.costMs) / sum(all, fullMs)).toBeCloseTo(0.6, 2);
    for (const { base, extras } of all.slice(0, 100)) {
      const whole = extras.reduce((total, { value }) => total + value, base.value);
      expect(base.value / whole).toBeCloseTo(0.8, 10);
      const densities = extras.map(({ value, costMs }) => value / costMs);
      expect(densities).toEqual(densities.toSorted((a, b) => b - a));
    }
  });

  it('tells ten tiers of density that are as good as even', () => {
    const all = requests([{ fromMs: 0, load: 1 }], 20_000);
    for (let tier = 0; tier < 10; tier += 1) {
      const share = all.filter(({ densityTier }) => densityTier === tier).length / all.length;
      expect(share).toBeGreaterThan(0.08);
      expect(share).toBeLessThan(0.12);
    }
  });

  it('is the same for a seed, and another for another', () => {
    const steps = [{ fromMs: 0, load: 1 }];
    expect(requests(steps, 1_000)).toEqual(requests(steps, 1_000));
    expect(requests(steps, 1_000, 2)).not.toEqual(requests(steps, 1_000));
  });
});
