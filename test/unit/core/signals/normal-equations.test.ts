import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type NormalEquations, notNegativeSolution } from '../../../../src/core/signals/normal-equations.ts';

/** Of rows of features, each with weight 1, whose linear fit is to be `wanted`. */
function equationsOf(rows: readonly (readonly number[])[], wanted: readonly number[]): NormalEquations {
  const columns = wanted.map((_, n) => rows.map((row) => row[n] ?? 0));
  const dot = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, value, n) => sum + value * (b[n] ?? 0), 0);
  return {
    products: columns.map((one) => columns.map((other) => dot(one, other))),
    sums: columns.map((one) => dot(one, wanted)),
  };
}

const squaredError = (
  rows: readonly (readonly number[])[],
  wanted: readonly number[],
  coefficients: readonly number[],
): number =>
  rows.reduce((sum, row, n) => {
    const predicted = row.reduce((total, value, i) => total + value * (coefficients[i] ?? 0), 0);
    return sum + (predicted - (wanted[n] ?? 0)) ** 2;
  }, 0);

/** Normal equations of rows, for what was measured of each. */
function fitted(rows: readonly (readonly number[])[], measured: readonly number[]): number[] {
  const size = rows[0]?.length ?? 0;
  const at = (i: number, j: number): number =>
    rows.reduce((sum, row) => sum + (row[i] ?? 0) * (row[j] ?? 0), 0);
  const axes = Array.from({ length: size }, (_, n) => n);
  return notNegativeSolution({
    products: axes.map((i) => axes.map((j) => at(i, j))),
    sums: axes.map((i) => rows.reduce((sum, row, n) => sum + (row[i] ?? 0) * (measured[n] ?? 0), 0)),
  });
}

const feature = fc.double({ min: 0, max: 10, noNaN: true });
const row = fc.tuple(fc.constant(1), feature, feature);

describe('coefficients of least squares that are not negative', () => {
  it('are those that made the sums, however far apart features are in size', () => {
    const coefficient = fc.double({ min: 0.01, max: 100, noNaN: true });
    const scale = fc.constantFrom(1e-6, 1, 1e6);
    fc.assert(
      fc.property(
        fc.tuple(coefficient, coefficient, coefficient),
        fc.tuple(scale, scale, scale),
        (wanted, scales) => {
          const shapes = [
            [1, 0, 0],
            [1, 5, 1],
            [1, 2, 7],
            [1, 9, 4],
          ].map((shape) => shape.map((value, n) => value * (scales[n] ?? 1)));
          const measured = shapes.map((shape) =>
            shape.reduce((sum, value, n) => sum + value * (wanted[n] ?? 0), 0),
          );
          const found = fitted(shapes, measured);
          const error = Math.sqrt(squaredError(shapes, measured, found));
          expect(error).toBeLessThanOrEqual(1e-6 * Math.max(...measured));
        },
      ),
    );
  });

  it('leave out one that would be negative, and fit the rest again', () => {
    // Falls with the second feature: without it the best is the mean.
    const rows = [
      [1, 0],
      [1, 1],
      [1, 2],
    ];
    const found = fitted(rows, [3, 2, 1]);
    expect(found[0]).toBeCloseTo(2);
    expect(found[1]).toBe(0);
  });

  it('leave out one that follows from the others', () => {
    const rows = [
      [1, 2, 2],
      [1, 3, 3],
      [1, 5, 5],
    ];
    const found = fitted(rows, [5, 7, 11]);
    expect(found[0]).toBeCloseTo(1);
    expect(found[1]).toBeCloseTo(2);
    expect(found[2]).toBe(0);
  });

  it.each([
    ['no equations', { products: [], sums: [] }, []],
    [
      'only zeros',
      {
        products: [
          [0, 0],
          [0, 0],
        ],
        sums: [0, 0],
      },
      [0, 0],
    ],
    ['what is no number', { products: [[Number.NaN]], sums: [Number.NaN] }, [0]],
    ['one that is negative alone', { products: [[1]], sums: [-1] }, [0]],
  ])('are %s: none, or 0', (_, equations, want) => {
    expect(notNegativeSolution(equations)).toEqual(want);
  });

  it('change nothing in what they are given', () => {
    const equations = equationsOf(
      [
        [1, 2],
        [1, 3],
      ],
      [1, 1],
    );
    const before = structuredClone(equations);
    notNegativeSolution(equations);
    expect(equations).toEqual(before);
  });

  it('are finite and 0 or more for any system, and no worse than any one of them alone', () => {
    const system = fc.array(fc.tuple(row, fc.double({ min: 0, max: 10, noNaN: true })), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(system, (samples) => {
        const rows = samples.map(([features]) => features);
        const measured = samples.map(([, ms]) => ms);
        const found = fitted(rows, measured);
        expect(found).toHaveLength(3);
        for (const value of found) expect(Number.isFinite(value) && value >= 0).toBe(true);
        const none = squaredError(rows, measured, [0, 0, 0]);
        expect(squaredError(rows, measured, found)).toBeLessThanOrEqual(none + 1e-6);
      }),
    );
  });
});
