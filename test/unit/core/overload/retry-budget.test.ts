import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryBudget } from '../../../../src/core/overload/retry-budget.ts';

const SHARE = 0.1;

describe('the budget of retries', () => {
  it('holds over every stretch of time: at most a tenth of the requests, and the burst', () => {
    const anyCalls = fc.array(fc.constantFrom('first', 'retry'), { maxLength: 200 });
    fc.assert(
      fc.property(anyCalls, fc.integer({ min: 1, max: 20 }), fc.nat(200), (calls, burst, from) => {
        const budget = new RetryBudget({ share: SHARE, burst });
        let requests = 0;
        let retries = 0;
        for (const [index, call] of calls.entries()) {
          if (index === from) requests = retries = 0;
          if (call === 'first') {
            budget.firstAttempt();
            requests += 1;
          } else if (budget.take()) retries += 1;
        }
        expect(retries).toBeLessThanOrEqual(SHARE * requests + burst + 1e-6);
      }),
    );
  });

  it('is spent to the full: the burst at once, then one in ten', () => {
    const budget = new RetryBudget({ share: SHARE, burst: 5 });
    const take = (): number => (budget.take() ? 1 : 0);
    let atOnce = 0;
    for (let call = 0; call < 20; call += 1) atOnce += take();
    let later = 0;
    for (let request = 0; request < 1_000; request += 1) {
      budget.firstAttempt();
      later += take();
    }
    expect([atOnce, later]).toEqual([5, 100]);
  });

  it('saves no more than the burst in quiet times', () => {
    const budget = new RetryBudget({ share: SHARE, burst: 5 });
    for (let request = 0; request < 1_000; request += 1) budget.firstAttempt();
    const taken = Array.from({ length: 20 }, () => budget.take()).filter((isTaken) => isTaken);
    expect(taken.length).toBe(5);
  });
});
