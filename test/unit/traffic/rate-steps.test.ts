import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { poissonArrivals, type RateStep, shapedRate } from '../../../src/traffic/rate-steps.ts';
import type { RequestShape } from '../../../src/traffic/request-maker.ts';

function* sameShape(): Generator<RequestShape, never, void> {
  for (;;) yield { candidates: 1, historyRows: 0 };
}

function timesOf(steps: Iterable<RateStep>, seed = 1): number[] {
  let atMs = 0;
  return [...poissonArrivals(steps, seededRandom(seed).stream('arrivals'), sameShape())].map(
    ({ afterMs }) => {
      atMs += afterMs;
      return atMs;
    },
  );
}

function upTo(steps: Iterable<RateStep>, untilMs: number): RateStep[] {
  const taken: RateStep[] = [];
  let atMs = 0;
  for (const step of steps) {
    taken.push({ ...step, lengthMs: Math.min(step.lengthMs, untilMs - atMs) });
    atMs += step.lengthMs;
    if (atMs >= untilMs) break;
  }
  return taken;
}

const meanOf = (steps: readonly RateStep[]): number =>
  steps.reduce((sum, { lengthMs, perSecond }) => sum + lengthMs * perSecond, 0) /
  steps.reduce((sum, { lengthMs }) => sum + lengthMs, 0);

describe('a rate with a shape', () => {
  it.each([
    ['none', {}],
    ['bursts', { bursts: { everyMs: 20_000, lengthMs: 2_000, factor: 3 } }],
    ['a wave', { wave: { periodMs: 60_000, depth: 0.8 } }],
    [
      'both',
      { bursts: { everyMs: 7_000, lengthMs: 1_000, factor: 10 }, wave: { periodMs: 70_000, depth: 1 } },
    ],
  ])('has its mean over whole periods: %s', (_what, shape) => {
    // Every period above divides 4 200 s.
    expect(meanOf(upTo(shapedRate(50, shape), 4_200_000)) / 50).toBeCloseTo(1, 1);
  });

  it('has a burst in the middle of its period, for exactly its length', () => {
    const steps = upTo(shapedRate(120, { bursts: { everyMs: 10_000, lengthMs: 2_000, factor: 2 } }), 10_000);
    expect(steps).toEqual([
      { lengthMs: 4_000, perSecond: 100 },
      { lengthMs: 2_000, perSecond: 200 },
      { lengthMs: 4_000, perSecond: 100 },
    ]);
  });

  it('goes on, whatever its shape', () => {
    const length = fc.integer({ min: 1, max: 100_000 });
    fc.assert(
      fc.property(length, length, length, (everyMs, lengthMs, periodMs) => {
        fc.pre(lengthMs < everyMs);
        const steps = shapedRate(10, {
          bursts: { everyMs, lengthMs, factor: 2 },
          wave: { periodMs, depth: 0.5 },
        });
        for (let n = 0; n < 500; n += 1) {
          const { lengthMs: stepMs, perSecond } = steps.next().value as RateStep;
          expect(stepMs).toBeGreaterThan(0);
          expect(perSecond).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('arrivals at a rate that changes', () => {
  it('come as often as each step says, and none while it says 0', () => {
    const times = timesOf([
      { lengthMs: 100_000, perSecond: 100 },
      { lengthMs: 100_000, perSecond: 0 },
      { lengthMs: 100_000, perSecond: 20 },
    ]);
    const within = (from: number, to: number) => times.filter((atMs) => atMs >= from && atMs < to).length;
    expect(Math.abs(within(0, 100_000) - 10_000)).toBeLessThan(400);
    expect(within(100_000, 200_000)).toBe(0);
    expect(Math.abs(within(200_000, 300_000) - 2_000)).toBeLessThan(180);
    expect(times.every((atMs) => atMs <= 300_000)).toBe(true);
  });

  it('do not depend on how a rate is cut into steps', () => {
    const whole = timesOf([{ lengthMs: 10_000, perSecond: 50 }]);
    const cut = timesOf(Array.from({ length: 1_000 }, () => ({ lengthMs: 10, perSecond: 50 })));
    expect(cut).toHaveLength(whole.length);
    for (const [n, atMs] of cut.entries()) expect(atMs).toBeCloseTo(whole[n] ?? Number.NaN, 3);
  });
});
