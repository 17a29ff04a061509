import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Speed } from '../../../../src/core/latency/speed.ts';

describe('the speed of a device', () => {
  it.each([
    [1, 1],
    [4, 4],
    [Number.POSITIVE_INFINITY, 1e4],
    [0, 1e-4],
    [Number.NaN, 1],
  ])('begins with what its profile expects: %d gives %d', (expected, value) => {
    expect(new Speed(expected).value()).toBeCloseTo(value);
  });

  it('follows what is measured, within a few seconds of computing', () => {
    const speed = new Speed(4);
    for (let batch = 0; batch < 400; batch += 1) speed.observe(2, 10);
    expect(speed.value()).toBeCloseTo(0.2, 1);
  });

  it('does not take one slow batch for a slow device', () => {
    const speed = new Speed(1);
    speed.observe(2, 20);
    expect(speed.value()).toBeGreaterThan(0.9);
  });

  it('is a finite number within its bounds whatever is observed', () => {
    const ms = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(ms, ms), { maxLength: 50 }), (batches) => {
        const speed = new Speed(1);
        for (const [predictedMs, busyMs] of batches) speed.observe(predictedMs, busyMs);
        expect(speed.value()).toBeGreaterThanOrEqual(1e-4);
        expect(speed.value()).toBeLessThanOrEqual(1e4);
      }),
    );
  });
});
