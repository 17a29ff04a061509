import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Gradient2 } from '../../../../src/simulation/baselines/gradient2.ts';

describe("Netflix's Gradient2", () => {
  it('grows by 0.2 of the queue of 4 where latencies stay as they are, up to 200', () => {
    const gradient = new Gradient2();
    gradient.completed(10, 20);
    expect(gradient.limit).toBeCloseTo(20.8, 10);
    for (let sample = 0; sample < 1_000; sample += 1) gradient.completed(10, 200);
    expect(gradient.limit).toBe(200);
  });

  it('does not grow while fewer than half of the limit are under way', () => {
    const gradient = new Gradient2();
    for (let sample = 0; sample < 100; sample += 1) gradient.completed(10, 9);
    expect(gradient.limit).toBe(20);
  });

  it('tolerates latencies up to 1.5 times those of long, and shrinks above', () => {
    const limitAfter = (ms: number): number => {
      const gradient = new Gradient2();
      for (let sample = 0; sample < 200; sample += 1) gradient.completed(10, 200);
      const before = gradient.limit;
      gradient.completed(ms, 200);
      return gradient.limit - before;
    };
    expect(limitAfter(14.9)).toBeCloseTo(0.8, 6);
    expect(limitAfter(25)).toBeLessThan(-10);
    // At most by half before the smoothing: 0.2 × (0.5 × 180 + 4) and 0.8 × 180.
    expect(limitAfter(1e6)).toBeCloseTo(-0.2 * 0.5 * 180 + 0.8, 6);
  });

  it('drifts up under an overload that lasts: the long latency follows the short one', () => {
    const gradient = new Gradient2();
    for (let sample = 0; sample < 50_000; sample += 1) gradient.completed(10 + sample / 500, 200);
    expect(gradient.limit).toBe(200);
  });

  it('stays between 20 and 200', () => {
    const anySample = fc.tuple(fc.double({ min: 0.01, max: 1e4, noNaN: true }), fc.nat(300));
    fc.assert(
      fc.property(fc.array(anySample), (samples) => {
        const gradient = new Gradient2();
        for (const [ms, inflight] of samples) {
          gradient.completed(ms, inflight);
          expect(gradient.limit).toBeGreaterThanOrEqual(20);
          expect(gradient.limit).toBeLessThanOrEqual(200);
        }
      }),
    );
  });
});
