import { describe, expect, it } from 'vitest';
import { createGenerator } from '../../../../src/core/random/generator.ts';
import {
  addAssignments,
  isSampleRatioOff,
  logEOfSampleRatio,
  startSampleRatio,
} from '../../../../src/core/rollout/sample-ratio.ts';

const counted = (percent: number, slack: number, canary: number, stable: number) =>
  addAssignments(startSampleRatio(percent, slack), canary, stable);

describe('sample ratio', () => {
  it('without slack is the beta-binomial mixture over the declared share', () => {
    // ∫ p^2 (1−p)^3 dp = 2!·3!/6! = 1/60
    expect(logEOfSampleRatio(counted(20, 1, 2, 3))).toBeCloseTo(Math.log(1 / 60 / (0.2 ** 2 * 0.8 ** 3)), 10);
  });

  it.each([
    ['as declared', 5, 1, 5_000, 95_000, false],
    ['a fifth more, no slack', 5, 1, 6_000, 94_000, true],
    ['a fifth more, within the slack', 5, 2, 6_000, 94_000, false],
    ['three times, beyond the slack', 5, 2, 15_000, 85_000, true],
    ['a third, beyond the slack', 5, 2, 1_600, 98_400, true],
    ['nobody at all', 5, 2, 0, 1_000, true],
    ['nobody yet', 5, 2, 0, 100, false],
    ['nothing', 5, 2, 0, 0, false],
    ['a canary that was not declared', 0, 2, 1, 1_000, true],
    ['no canary, as declared', 0, 2, 0, 1_000, false],
    ['a control that should be gone', 100, 2, 1_000, 1, true],
  ] as const)('%s', (_, percent, slack, canary, stable, off) => {
    expect(isSampleRatioOff(counted(percent, slack, canary, stable))).toBe(off);
  });

  it('is off from an E of 1 000 on, and not below: wrong at most once in 1 000', () => {
    const logFactorials = [0];
    for (let n = 1; n <= 301; n++) logFactorials.push((logFactorials[n - 1] ?? 0) + Math.log(n));
    const logFactorial = (n: number): number => logFactorials[n] ?? Number.NaN;
    const met = new Set<string>();
    for (let requests = 20; requests <= 300; requests++) {
      for (let canary = 0; canary <= requests; canary++) {
        const logMixture =
          logFactorial(canary) + logFactorial(requests - canary) - logFactorial(requests + 1);
        const e = Math.exp(logMixture + requests * Math.log(2));
        if (Math.abs(e / 1_000 - 1) > 0.1) continue;
        met.add(e < 1_000 ? 'just below' : 'just above');
        expect([e, isSampleRatioOff(counted(50, 1, canary, requests - canary))]).toEqual([e, e >= 1_000]);
      }
    }
    expect(met.size).toBe(2);
  });

  it('is rarely wrong, however often it is looked at', () => {
    const random = createGenerator(3, 'sample-ratio');
    let wrong = 0;
    for (let path = 0; path < 1_500; path++) {
      let test = startSampleRatio(20, 1);
      for (let look = 0; look < 25 && !isSampleRatioOff(test); look++) {
        let canary = 0;
        for (let request = 0; request < 20; request++) if (random.next() < 0.2) canary += 1;
        test = addAssignments(test, canary, 20 - canary);
      }
      if (isSampleRatioOff(test)) wrong += 1;
    }
    expect(wrong / 1_500).toBeLessThanOrEqual(0.003);
  });
});
