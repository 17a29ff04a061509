import type { KnownGood, LastKnownGood } from '../../ports/last-known-good.ts';

const GENERATIONS = 2;

/** Kept as long as this process lives: for tests and simulations, in which a router's life is shorter than that. */
export function memoryLastKnownGood(): LastKnownGood {
  const kept = new Map<string, readonly KnownGood[]>();
  return {
    load: async (scope) => structuredClone(kept.get(scope) ?? []),
    async save(scope, good) {
      const before = kept.get(scope) ?? [];
      if (before[0] !== undefined && before[0].pointer.epoch >= good.pointer.epoch) return;
      kept.set(scope, structuredClone([good, ...before].slice(0, GENERATIONS)));
    },
  };
}
