import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DcafAction, dcafChoice, dcafLambda } from '../../../../src/simulation/baselines/dcaf.ts';

const anyAmount = fc.double({ min: 0.1, max: 10, noNaN: true });
const anyLog = fc.array(
  fc.array(fc.record({ cost: anyAmount, gain: anyAmount }), { minLength: 1, maxLength: 4 }),
  { minLength: 1, maxLength: 40 },
);

function spent(log: readonly (readonly DcafAction[])[], lambda: number): DcafAction {
  const sum = { cost: 0, gain: 0 };
  for (const actions of log) {
    const choice = actions[dcafChoice(actions, lambda) ?? -1];
    sum.cost += choice?.cost ?? 0;
    sum.gain += choice?.gain ?? 0;
  }
  return sum;
}

describe("DCAF's allocation", () => {
  it('takes the action with the greatest gain less its price, and none where all are below 0', () => {
    const actions = [
      { cost: 1, gain: 4 },
      { cost: 3, gain: 7 },
      { cost: 9, gain: 9 },
    ];
    expect([0, 0.1, 1, 2, 5].map((lambda) => dcafChoice(actions, lambda))).toEqual([2, 2, 1, 0, undefined]);
  });

  it('finds that nothing fits where the best is worth its price by a rounding', () => {
    const log = [
      [{ cost: 1.7840981600040633, gain: 0.24378945429446186 }],
      [{ cost: 0.7318192516437299, gain: 0.1 }],
    ];
    expect(spent(log, dcafLambda(log, 1)).cost).toBe(0);
  });

  it('costs less as λ rises, and what is found fits the budget and is the least that does', () => {
    fc.assert(
      fc.property(
        anyLog,
        anyAmount,
        anyAmount,
        fc.double({ min: 1, max: 100, noNaN: true }),
        (log, a, b, budget) => {
          expect(spent(log, Math.max(a, b)).cost).toBeLessThanOrEqual(spent(log, Math.min(a, b)).cost + 1e-9);
          const lambda = dcafLambda(log, budget);
          expect(spent(log, lambda).cost).toBeLessThanOrEqual(budget + 1e-9);
          if (lambda > 0) expect(spent(log, lambda * (1 - 1e-9) - 1e-12).cost).toBeGreaterThan(budget);
        },
      ),
    );
  });

  it('is optimal for what it spends (Lagrangian duality): no other allocation of that cost gains more', () => {
    const anySmall = fc.array(
      fc.array(fc.record({ cost: anyAmount, gain: anyAmount }), { minLength: 1, maxLength: 2 }),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(anySmall, fc.double({ min: 1, max: 30, noNaN: true }), (log, budget) => {
        const found = spent(log, dcafLambda(log, budget));
        expect(found.gain).toBeGreaterThanOrEqual(bestGain(log, found.cost) - 1e-6);
      }),
    );
  });
});

function bestGain(log: readonly (readonly DcafAction[])[], budget: number): number {
  const [first, ...rest] = log;
  if (first === undefined) return 0;
  let best = bestGain(rest, budget);
  for (const { cost, gain } of first)
    if (cost <= budget) best = Math.max(best, gain + bestGain(rest, budget - cost));
  return best;
}
