import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RecentRate } from '../../../../src/core/latency/rate.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import { WindowedMinimum } from '../../../../src/core/latency/windowed-minimum.ts';

it('a quantile is within 1 % of the exact one, also after a merge and a trip over the wire', () => {
  const samples = fc.array(fc.double({ min: 0.01, max: 10_000, noNaN: true }), {
    minLength: 1,
    maxLength: 300,
  });
  fc.assert(
    fc.property(samples, samples, (left, right) => {
      const a = new LatencySketch();
      const b = new LatencySketch();
      for (const ms of left) a.add(ms);
      for (const ms of right) b.add(ms);
      const merged = LatencySketch.fromBytes(a.toBytes());
      merged.merge(LatencySketch.fromBytes(b.toBytes()));
      const all = [...left, ...right].sort((x, y) => x - y);
      expect(merged.count).toBe(all.length);
      for (const q of [0.5, 0.9, 0.99]) {
        const exact = all[Math.floor(q * (all.length - 1))] ?? 0;
        expect(Math.abs(merged.quantileMs(q) - exact)).toBeLessThanOrEqual(0.0101 * exact);
      }
    }),
  );
});

it('an empty sketch has no bytes and no latency', () => {
  const empty = new LatencySketch();
  expect(empty.toBytes()).toHaveLength(0);
  expect(LatencySketch.fromBytes(empty.toBytes()).quantileMs(0.99)).toBe(0);
});

it('a recent rate follows a change within two windows and forgets', () => {
  const rate = new RecentRate(100, 0);
  for (let ms = 0; ms < 1_000; ms += 1) rate.add(1, ms);
  expect(rate.perMs(1_000)).toBeCloseTo(1, 1);
  expect(rate.perMs(1_250)).toBe(0);
});

it('a windowed minimum keeps the least of the last windows and lets go of older ones', () => {
  const least = new WindowedMinimum(100, 0);
  expect(least.value()).toBeUndefined();
  least.add(3, 0);
  least.add(9, 50);
  expect(least.value()).toBe(3);
  least.add(9, 120);
  expect(least.value()).toBe(3);
  least.add(8, 230);
  expect(least.value()).toBe(8);
});
