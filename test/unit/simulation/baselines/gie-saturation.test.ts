import { describe, expect, it } from 'vitest';
import { gieSaturation } from '../../../../src/simulation/baselines/gie-saturation.ts';

describe("the inference extension's saturation", () => {
  it.each([
    ['a queue of 5', [{ queued: 5, memory: 0 }], 1],
    ['memory at 0.8', [{ queued: 0, memory: 0.8 }], 1],
    ['the worse of the two', [{ queued: 10, memory: 0.4 }], 2],
    [
      'the mean over replicas',
      [
        { queued: 10, memory: 0 },
        { queued: 0, memory: 0.4 },
      ],
      1.25,
    ],
    ['no replica: saturated', [], 1],
  ])('is that of %s', (_, replicas, saturation) => {
    expect(gieSaturation(replicas)).toBeCloseTo(saturation, 10);
  });
});
