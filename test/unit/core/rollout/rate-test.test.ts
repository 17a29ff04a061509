import { expect, it } from 'vitest';
import { createGenerator } from '../../../../src/core/random/generator.ts';
import { addRequests, logEOfRate, startRateTest } from '../../../../src/core/rollout/rate-test.ts';

it('without events, a few thousand requests refute 1 in 1 000', () => {
  const counted = (requests: number) => Math.exp(logEOfRate(addRequests(startRateTest(0.001), requests, 0)));
  expect(counted(0)).toBeCloseTo(1, 12);
  expect(counted(3_000)).toBeLessThan(20);
  expect(counted(6_000)).toBeGreaterThan(40);
});

it('events at the limit never pass for rarer, up to what is promised', () => {
  const random = createGenerator(11, 'rate');
  const paths = 2_000;
  let sum = 0;
  let reached = 0;
  for (let path = 0; path < paths; path++) {
    let test = startRateTest(0.05);
    let largest = 0;
    for (let look = 0; look < 20; look++) {
      let events = 0;
      for (let request = 0; request < 20; request++) if (random.next() < 0.05) events += 1;
      test = addRequests(test, 20, events);
      largest = Math.max(largest, Math.exp(logEOfRate(test)));
      if (look === 2) sum += Math.exp(logEOfRate(test));
    }
    if (largest >= 20) reached += 1;
  }
  expect(sum / paths).toBeLessThan(1.2);
  expect(reached / paths).toBeLessThan(1 / 20);
});
