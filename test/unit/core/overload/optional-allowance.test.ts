import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OptionalAllowance } from '../../../../src/core/overload/optional-allowance.ts';

describe('the allowance of optional work', () => {
  it('lets through at most a twentieth of what is offered', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 20, noNaN: true }), { maxLength: 400 }), (costs) => {
        const allowance = new OptionalAllowance(100);
        let offeredMs = 0;
        let takenMs = 0;
        for (const costMs of costs) {
          allowance.offered(costMs);
          offeredMs += costMs;
          if (allowance.take(costMs)) takenMs += costMs;
        }
        expect(takenMs).toBeLessThanOrEqual(0.05 * offeredMs + 1e-9);
      }),
    );
  });

  it('lets through near a twentieth where all is alike', () => {
    const allowance = new OptionalAllowance(100);
    let taken = 0;
    for (let request = 0; request < 1_000; request += 1) {
      allowance.offered(4);
      if (allowance.take(4)) taken += 1;
    }
    expect(taken).toBeGreaterThanOrEqual(49);
  });

  it('keeps no more than its burst', () => {
    const allowance = new OptionalAllowance(10);
    for (let request = 0; request < 1_000; request += 1) allowance.offered(4);
    expect([allowance.take(8), allowance.take(4)]).toEqual([true, false]);
  });
});
