import { describe, expect, it } from 'vitest';
import { Breakwater } from '../../../../src/simulation/baselines/breakwater.ts';

const SLO_MS = 100;

describe("Breakwater's credits", () => {
  it.each([
    ['one more below the target, with few clients', 1_000, 39, 1_001],
    ['a thousandth of many clients more', 5_000, 39, 5_005],
    ['none at the target', 1_000, 40, 1_000],
    ['2 % fewer at twice the target', 1_000, 80, 980],
    ['half at most', 1_000, 1e9, 500],
  ])('%s', (_, clients, delayMs, credits) => {
    const breakwater = new Breakwater(SLO_MS, clients);
    breakwater.update(delayMs);
    expect(breakwater.credits).toBeCloseTo(credits, 6);
  });

  it('drops above twice the target', () => {
    expect(new Breakwater(SLO_MS, 100).dropAboveMs).toBe(80);
  });

  it('steers the delay to the target: ten servers of 10 ms, endless demand', () => {
    const breakwater = new Breakwater(SLO_MS, 1_000);
    const delaysMs: number[] = [];
    for (let trip = 0; trip < 20_000; trip += 1) {
      const delayMs = Math.max(0, breakwater.credits - 10);
      delaysMs.push(delayMs);
      breakwater.update(delayMs);
    }
    const late = delaysMs.slice(10_000);
    expect(late.reduce((sum, ms) => sum + ms, 0) / late.length).toBeCloseTo(40, -1);
  });
});
