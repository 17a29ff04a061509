import { describe, expect, it } from 'vitest';
import { Demand } from '../../../../src/core/overload/demand.ts';
import { NO_CUT } from '../../../../src/core/overload/overload-order.ts';

describe('the demand', () => {
  it.each([50, 500, 5_000])(
    'weighs as much as a constant one of its window, after %d ms of watching',
    (watchedMs) => {
      const demand = new Demand(2, 500, 0);
      for (let ms = 0.5; ms < watchedMs; ms += 1) demand.add({ tier: 1, lnDensity: 0 }, 3, ms);
      expect(demand.massMs(watchedMs) / demand.windowMs(watchedMs)).toBeCloseTo(3, 4);
    },
  );

  it.each([
    ['in the first tier', 5, { tier: 0, lnDensity: 0.05 }],
    ['in a later tier, after all of the first', 14, { tier: 2, lnDensity: 0.06 }],
    ['nowhere, where all fits', 20, NO_CUT],
  ])('is cut %s', (_, capMs, cut) => {
    const demand = new Demand(3, 500, 0);
    demand.add({ tier: 0, lnDensity: 0.01 }, 10, 0);
    demand.add({ tier: 2, lnDensity: 0.01 }, 10, 0);
    const found = demand.cutAt(capMs, 0);
    expect(found.tier).toBe(cut.tier);
    expect(found.lnDensity).toBeCloseTo(cut.lnDensity, 6);
  });
});
