import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LatencyBins } from '../../../../src/simulation/routing/latency-bins.ts';

describe('LatencyBins', () => {
  it('has each quantile within 0.1 % of the exact one, and the exact mean and greatest', () => {
    const latencies = fc.array(fc.double({ min: 0.01, max: 1e6, noNaN: true }), { minLength: 1 });
    fc.assert(
      fc.property(latencies, fc.double({ min: 0, max: 1, noNaN: true }), (all, q) => {
        const bins = new LatencyBins();
        const others = new LatencyBins();
        for (const [place, each] of all.entries()) (place % 3 === 0 ? others : bins).add(each);
        bins.merge(others);
        const sorted = all.toSorted((a, b) => a - b);
        const exact = sorted[Math.floor(q * (sorted.length - 1))] ?? 0;
        expect(Math.abs(bins.quantileMs(q) / exact - 1)).toBeLessThanOrEqual(0.001 + 1e-9);
        expect(bins.maxMs).toBe(sorted.at(-1));
        expect(bins.meanMs).toBeCloseTo(all.reduce((sum, each) => sum + each, 0) / all.length, 6);
        expect(bins.count).toBe(all.length);
      }),
    );
  });

  it('is 0 of nothing', () => {
    expect(new LatencyBins().quantileMs(0.99)).toBe(0);
  });
});
