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

  it.each([
    ['as fast as predicted', 1, 500, 500, 1],
    ['twice as fast for as long as is remembered', 1, 1_000, 500, 1.5],
    ['half as fast for half as long', 1, 125, 250, 625 / 750],
    ['faster than a device that was expected to be fast', 4, 2_000, 250, 4_000 / 750],
  ])('adds what was done to what is remembered: %s', (_, expected, predictedMs, busyMs, value) => {
    const speed = new Speed(expected);
    speed.observe(predictedMs, busyMs);
    expect(speed.value()).toBeCloseTo(value, 10);
  });

  it('takes a busy time below nothing, of a clock that was set back, for none', () => {
    const speeds = [0, -400].map((busyMs) => {
      const speed = new Speed(1);
      speed.observe(2, busyMs);
      speed.observe(10, 20);
      return speed.value();
    });
    expect(speeds[1]).toBe(speeds[0]);
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
