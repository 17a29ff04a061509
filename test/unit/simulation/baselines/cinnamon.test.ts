import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { CinnamonRejector, CinnamonTuner } from '../../../../src/simulation/baselines/cinnamon.ts';

describe("Cinnamon's rejector", () => {
  it.each([1.5, 2, 4])(
    'settles at the share that is too much, at a load of %d, within ten seconds',
    (load) => {
      const rejector = new CinnamonRejector();
      const priorities = seededRandom(1).stream('priorities');
      const perPeriod = 500;
      let admitted = 0;
      for (let period = 0; period < 40; period += 1) {
        let passed = 0;
        for (let request = 0; request < load * perPeriod; request += 1)
          if (rejector.admits(priorities.below(768))) passed += 1;
        rejector.update({
          in: passed,
          out: Math.min(passed, perPeriod),
          freeInflight: Math.max(0, perPeriod - passed),
        });
        if (period >= 20) admitted += passed / (20 * perPeriod);
      }
      expect(admitted).toBeGreaterThan(0.9);
      expect(admitted).toBeLessThan(1.1);
      expect(rejector.share).toBeCloseTo(1 - 1 / load, 1);
    },
  );

  it('rejects the lowest priorities first', () => {
    const rejector = new CinnamonRejector();
    for (let request = 0; request < 1_000; request += 1) rejector.admits(request % 10);
    // e = 1: P = 0.1 and I = 0.7 leave exp(-0.8) = 45 %.
    rejector.update({ in: 200, out: 100, freeInflight: 0 });
    expect(rejector.share).toBeCloseTo(0.551, 3);
    expect([0, 3, 4, 5, 9].map((priority) => rejector.admits(priority))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('rejects nothing while there is room, and need not unwind it afterwards', () => {
    const rejector = new CinnamonRejector();
    rejector.admits(5);
    for (let period = 0; period < 100; period += 1) rejector.update({ in: 50, out: 50, freeInflight: 50 });
    expect(rejector.admits(9)).toBe(true);
    rejector.update({ in: 200, out: 100, freeInflight: 0 });
    expect(rejector.share).toBeGreaterThan(0.5);
  });
});

describe("Cinnamon's auto-tuner", () => {
  /** Ten servers of 10 ms: what is above ten at once queues. */
  function settle(start: number): number[] {
    const tuner = new CinnamonTuner(start);
    const limits: number[] = [];
    for (let nowMs = 0; nowMs < 200_000; nowMs += 1) {
      const inflight = Math.floor(tuner.limit);
      tuner.completed(Math.max(10, inflight), inflight, nowMs);
      limits.push(tuner.limit);
    }
    return limits.slice(100_000);
  }

  it('finds a limit that keeps the servers busy with a short queue', () => {
    const limits = settle(4);
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(9);
    expect(Math.max(...limits)).toBeLessThan(30);
  });

  it('shrinks where latencies are far above those that it knows', () => {
    const tuner = new CinnamonTuner(40);
    for (let nowMs = 0; nowMs < 1_000; nowMs += 1) tuner.completed(10, 40, nowMs);
    const before = tuner.limit;
    for (let nowMs = 1_000; nowMs < 2_000; nowMs += 1) tuner.completed(40, 40, nowMs);
    expect(tuner.limit).toBeLessThan(before - 10);
  });
});
