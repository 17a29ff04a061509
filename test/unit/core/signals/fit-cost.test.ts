import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CostSample, costError, fitCost } from '../../../../src/core/signals/fit-cost.ts';

const FEATURES = ['1', 'N', 'T', 'N*T'];

function samplesOf(
  coefficients: readonly number[],
  shapes: readonly (readonly [number, number])[] = GRID,
): CostSample[] {
  const [base = 0, perN = 0, perT = 0, perBoth = 0] = coefficients;
  return shapes.map(([candidates, rows]) => ({
    candidates,
    rows,
    ms: base + perN * candidates + perT * rows + perBoth * candidates * rows,
  }));
}

const GRID = [1, 4, 64, 1_024].flatMap((n) => [0, 8, 64].map((t) => [n, t] as const));

describe('fitting a cost model', () => {
  it('finds the coefficients that made the samples', () => {
    const cost = fc.double({ min: 1e-5, max: 10, noNaN: true });
    fc.assert(
      fc.property(cost, cost, cost, cost, (...coefficients) => {
        const fitted = fitCost(FEATURES, samplesOf(coefficients));
        expect(costError(FEATURES, fitted, samplesOf(coefficients)).p95).toBeLessThan(1e-6);
      }),
    );
  });

  it('never lets a term cost less than nothing, whatever was measured', () => {
    const sample = fc.record({
      candidates: fc.integer({ min: 1, max: 2_048 }),
      rows: fc.integer({ min: 0, max: 64 }),
      ms: fc.double({ min: 1e-6, max: 1e4, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 20 }), (samples) => {
        const fitted = fitCost(FEATURES, samples);
        expect(fitted).toHaveLength(FEATURES.length);
        for (const coefficient of fitted) {
          expect(Number.isFinite(coefficient)).toBe(true);
          expect(coefficient).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  it('leaves out a term that makes requests cheaper, and fits the rest again', () => {
    const [base = 0, perN] = fitCost(
      ['1', 'N'],
      samplesOf(
        [10, -0.005],
        [
          [1, 0],
          [100, 0],
          [1_000, 0],
        ],
      ),
    );
    expect(perN).toBe(0);
    expect(base).toBeGreaterThan(5);
    expect(base).toBeLessThan(10);
  });

  it('does without a term that no sample tells apart from another', () => {
    const fitted = fitCost(
      ['1', 'N', 'T'],
      samplesOf(
        [1, 0.5, 0],
        [
          [1, 0],
          [2, 0],
          [10, 0],
        ],
      ),
    );
    expect(fitted[0]).toBeCloseTo(1);
    expect(fitted[1]).toBeCloseTo(0.5);
    expect(fitted[2]).toBe(0);
  });

  it('weighs small shapes as large ones: by the share that it is off', () => {
    const samples = [
      { candidates: 1, rows: 0, ms: 0.1 },
      { candidates: 1_000, rows: 0, ms: 100 },
    ];
    expect(costError(['1'], fitCost(['1'], samples), samples).median).toBeLessThan(1);
    expect(costError(['1'], [1], [{ candidates: 1, rows: 0, ms: 2 }])).toEqual({ median: 0.5, p95: 0.5 });
  });
});
