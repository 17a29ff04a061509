import { describe, expect, it } from 'vitest';
import { OverloadDetector } from '../../../../src/core/overload/overload-detector.ts';

describe('the detector of overload', () => {
  it.each([
    ['a wait up to 0.3 × SLA is calm', [30, 22, 29], [false, false, false]],
    ['above it is overload, until below 0.22 × SLA', [30.1, 22, 21.9], [true, true, false]],
    ['what is between keeps what was', [25, 31, 25, 10, 25], [false, true, true, false, false]],
  ])('%s', (_, waits, expected) => {
    const detector = new OverloadDetector(100);
    expect(waits.map((waitMs) => detector.observe(waitMs))).toEqual(expected);
  });
});
