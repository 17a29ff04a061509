import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CostHistogram } from '../../../../src/core/overload/cost-histogram.ts';

const HALF_LIFE_MS = 500;

const anyArrivals = fc.array(
  fc.record({
    afterMs: fc.oneof(
      fc.double({ min: 0, max: 50, noNaN: true }),
      fc.double({ min: 0, max: 60_000, noNaN: true }),
    ),
    lnDensity: fc.double({ min: -40, max: 40, noNaN: true }),
    costMs: fc.double({ min: 0, max: 100, noNaN: true }),
  }),
  { maxLength: 60 },
);

function fill(arrivals: { afterMs: number; lnDensity: number; costMs: number }[]) {
  const histogram = new CostHistogram(HALF_LIFE_MS, 0);
  let nowMs = 0;
  const timed = arrivals.map((arrival) => {
    nowMs += arrival.afterMs;
    histogram.add(arrival.lnDensity, arrival.costMs, nowMs);
    return { ...arrival, atMs: nowMs };
  });
  const decayed = timed.map((arrival) => ({
    ...arrival,
    costMs: arrival.costMs * 2 ** ((arrival.atMs - nowMs) / HALF_LIFE_MS),
  }));
  return { histogram, nowMs, decayed };
}

describe('the histogram of costs by density', () => {
  it('has the mass of the decayed sum, however long it lives', () => {
    fc.assert(
      fc.property(anyArrivals, fc.double({ min: 0, max: 3_000, noNaN: true }), (arrivals, laterMs) => {
        const { histogram, nowMs, decayed } = fill(arrivals);
        const sum = decayed.reduce((total, { costMs }) => total + costMs, 0);
        expect(histogram.massMs(nowMs)).toBeCloseTo(sum, 6);
        expect(histogram.massMs(nowMs + laterMs)).toBeCloseTo(sum * 2 ** (-laterMs / HALF_LIFE_MS), 6);
      }),
    );
  });

  it('is cut where the cost above reaches the cap, to within a bin', () => {
    const inRange = anyArrivals.filter((all) => all.every(({ lnDensity }) => Math.abs(lnDensity) < 31));
    fc.assert(
      fc.property(inRange, fc.double({ min: 0, max: 3_000, noNaN: true }), (arrivals, capMs) => {
        const { histogram, nowMs, decayed } = fill(arrivals);
        const above = (edge: number): number =>
          decayed.reduce((sum, { lnDensity, costMs }) => sum + (lnDensity >= edge ? costMs : 0), 0);
        const cut = histogram.cutAt(capMs, nowMs);
        if (cut === undefined) expect(above(Number.NEGATIVE_INFINITY)).toBeLessThanOrEqual(capMs + 1e-6);
        else {
          expect(above(cut + 0.1)).toBeLessThanOrEqual(capMs + 1e-6);
          expect(above(cut - 0.1)).toBeGreaterThanOrEqual(capMs - 1e-6);
        }
      }),
    );
  });

  it('is cut lower where more may pass', () => {
    fc.assert(
      fc.property(anyArrivals, fc.nat(500), fc.nat(500), (arrivals, capMs, moreMs) => {
        const { histogram, nowMs } = fill(arrivals);
        const lowest = Number.NEGATIVE_INFINITY;
        expect(histogram.cutAt(capMs + moreMs, nowMs) ?? lowest).toBeLessThanOrEqual(
          histogram.cutAt(capMs, nowMs) ?? lowest,
        );
      }),
    );
  });

  it('cuts inside a bin by the share of its cost that fits', () => {
    const histogram = new CostHistogram(HALF_LIFE_MS, 0);
    histogram.add(0.05, 10, 0);
    expect(histogram.cutAt(2.5, 0)).toBeCloseTo(0.075, 10);
  });
});
