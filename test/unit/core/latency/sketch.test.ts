import { DDSketch } from '@datadog/sketches-js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RecentRate } from '../../../../src/core/latency/rate.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import { WindowedExtreme } from '../../../../src/core/latency/windowed-extreme.ts';

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

/** Bytes of a sketch with these counts from this bin on. */
function sketchOf(firstBin: number, counts: number[], relativeAccuracy = 0.01): Uint8Array {
  const sketch = new DDSketch({ relativeAccuracy });
  Object.assign(sketch.store, { offset: firstBin, bins: counts, minKey: firstBin, maxKey: firstBin });
  return sketch.toProto();
}

it.each([
  ['a bin that is far away', sketchOf(2 ** 22, [1])],
  ['a bin that is far below', sketchOf(-(2 ** 22), [1])],
  ['a count that is none', sketchOf(0, [Number.NaN])],
  ['an infinite count', sketchOf(0, [Number.POSITIVE_INFINITY])],
  ['half a request', sketchOf(0, [0.5])],
  ['fewer than no requests', sketchOf(0, [-5])],
  ['counts whose sum is no count', sketchOf(0, [2 ** 52, 2 ** 52])],
  ['another accuracy', sketchOf(0, [1], 0.02)],
  ['its end missing', sketchOf(0, [1]).subarray(0, 20)],
  ['no sketch at all', Buffer.from('no sketch')],
])('what has %s is no sketch', (_what, bytes) => {
  expect(() => LatencySketch.fromBytes(bytes)).toThrow(expect.objectContaining({ code: 'MALFORMED' }));
});

it('whatever bytes come, they are a sketch that merges, or none', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        const merged = new LatencySketch();
        merged.add(1);
        merged.merge(LatencySketch.fromBytes(bytes));
        expect(Number.isSafeInteger(merged.count)).toBe(true);
      } catch (error) {
        expect(error).toMatchObject({ code: 'MALFORMED' });
      }
    }),
  );
});

it('a recent rate follows a change within two windows and forgets', () => {
  const rate = new RecentRate(100, 0);
  for (let ms = 0; ms < 1_000; ms += 1) rate.add(1, ms);
  expect(rate.perMs(1_000)).toBeCloseTo(1, 1);
  expect(rate.perMs(1_250)).toBe(0);
});

it.each([
  ['minimum', Math.min, 1],
  ['maximum', Math.max, -1],
] as const)(
  'a windowed %s keeps the extreme of the last windows and lets go of older ones',
  (_, pick, sign) => {
    const extreme = new WindowedExtreme(pick, 100, 0);
    expect(extreme.value()).toBeUndefined();
    extreme.add(3 * sign, 0);
    extreme.add(9 * sign, 50);
    expect(extreme.value()).toBe(3 * sign);
    extreme.add(9 * sign, 120);
    expect(extreme.value()).toBe(3 * sign);
    extreme.add(8 * sign, 230);
    expect(extreme.value()).toBe(8 * sign);
  },
);
