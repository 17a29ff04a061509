import type { PricedWork } from '../../../../src/core/overload/priced-work.ts';

/** A request whose baseline costs 6 ms and is worth 8, with one step of extras of 4 ms and 2. */
export function work(fields: Partial<PricedWork> = {}): PricedWork {
  return {
    deadlineMs: 100,
    priority: 5,
    isEnhanced: false,
    base: { costMs: 6, value: 8 },
    extras: [{ costMs: 4, value: 2 }],
    ...fields,
  };
}
