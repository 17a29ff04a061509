import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { SparseProduct } from '../../../../src/inference/sparse-kernel/sparse-product.ts';

interface Shape {
  inner: number;
  columns: number;
  rows: number;
  zeroShare: number;
  hasBias: boolean;
  seed: number;
}

const shapes: fc.Arbitrary<Shape> = fc.record({
  inner: fc.integer({ min: 1, max: 70 }),
  columns: fc.integer({ min: 1, max: 110 }),
  rows: fc.nat({ max: 12 }),
  zeroShare: fc.constantFrom(0, 0.3, 0.9, 0.99, 1),
  hasBias: fc.boolean(),
  seed: fc.nat(),
});

function made({ inner, columns, rows, zeroShare, hasBias, seed }: Shape) {
  const random = seededRandom(seed).stream('product');
  const values = (count: number, zeros = 0): Float32Array =>
    Float32Array.from({ length: count }, () => (random.next() < zeros ? 0 : random.next() * 2 - 1));
  return {
    x: values(rows * inner, zeroShare),
    weights: values(inner * columns),
    bias: hasBias ? values(columns) : undefined,
  };
}

/** In double precision; `size`: what the absolute values make, which bounds the rounding. */
function expected(x: Float32Array, weights: Float32Array, bias: Float32Array | undefined, shape: Shape) {
  const { inner, columns, rows } = shape;
  return Array.from({ length: rows * columns }, (_, n) => {
    const [row, column] = [Math.floor(n / columns), n % columns];
    let [value, size] = [bias?.[column] ?? 0, Math.abs(bias?.[column] ?? 0)];
    for (let k = 0; k < inner; k += 1) {
      const term = (x[row * inner + k] ?? 0) * (weights[k * columns + column] ?? 0);
      value += term;
      size += Math.abs(term);
    }
    return { value, size };
  });
}

describe('SparseProduct', () => {
  test('gives what a dense product gives, for any shape and share of zeros', () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const { x, weights, bias } = made(shape);
        const product = new SparseProduct({ ...shape, weights, bias });
        const got = product.multiply(x, shape.rows);
        expect(got).toHaveLength(shape.rows * shape.columns);
        expected(x, weights, bias, shape).forEach(({ value, size }, n) => {
          expect(Math.abs((got[n] ?? Number.NaN) - value)).toBeLessThanOrEqual(1e-5 * size);
        });
        expect(product.nonZeros).toBe(x.filter((value) => value !== 0).length);
      }),
      { numRuns: 200 },
    );
  });

  test('a call leaves nothing behind for the next, whichever is larger', () => {
    const shape = { inner: 37, columns: 50, zeroShare: 0.5, hasBias: true, seed: 1 };
    const calls = [3, 2_000, 1, 700, 0, 5].map((rows) => ({
      rows,
      x: made({ ...shape, rows, seed: rows }).x,
    }));
    const { weights, bias } = made({ ...shape, rows: 0 });
    const product = new SparseProduct({ ...shape, weights, bias });
    for (const { rows, x } of calls) {
      const alone = new SparseProduct({ ...shape, weights, bias }).multiply(x, rows);
      expect(product.multiply(x, rows)).toEqual(alone);
    }
  });

  test('rows do not depend on the rows beside them', () => {
    const shape = { inner: 21, columns: 7, rows: 900, zeroShare: 0.8, hasBias: false, seed: 3 };
    const { x, weights } = made(shape);
    const product = new SparseProduct({ ...shape, weights });
    const together = product.multiply(x, shape.rows).slice();
    for (const row of [0, 1, 194, 195, 196, 389, 899]) {
      const alone = product.multiply(x.subarray(row * 21, (row + 1) * 21), 1);
      expect(alone).toEqual(together.subarray(row * 7, (row + 1) * 7));
    }
  });

  test.each([
    ['all zeros, and −0 among them, give the bias', [0, -0, 0, 0, -0], [10, 20, 30]],
    ['one value gives its row of the weights', [0, 0, 0, 0, 2], [10 + 26, 20 + 28, 30 + 30]],
    ['the least value above zero counts', [0, 2 ** -149, 0, 0, 0], [10, 20, 30]],
    ['NaN makes NaN', [Number.NaN, 0, 0, 0, 0], [Number.NaN, Number.NaN, Number.NaN]],
    ['∞ makes ∞', [0, Number.POSITIVE_INFINITY, 0, 0, 0], [Infinity, Infinity, Infinity]],
    ['∞ − ∞ is NaN', [1 / 0, -1 / 0, 0, 0, 0], [Number.NaN, Number.NaN, Number.NaN]],
  ])('%s', (_, x, want) => {
    const weights = Float32Array.from({ length: 15 }, (_value, n) => n + 1);
    const product = new SparseProduct({ inner: 5, columns: 3, weights, bias: Float32Array.of(10, 20, 30) });
    expect([...product.multiply(Float32Array.from(x), 1)]).toEqual(want);
  });

  test('finds every value of the widest row', () => {
    const inner = 65_536;
    const weights = Float32Array.from({ length: inner }, (_, k) => k);
    const product = new SparseProduct({ inner, columns: 1, weights });
    for (const k of [0, 7, 8, 32_767, 32_768, 65_535]) {
      const x = new Float32Array(2 * inner);
      x[inner + k] = 1;
      expect([...product.multiply(x, 2)]).toEqual([0, k]);
    }
  });

  test('the least value above zero is a non-zero', () => {
    const product = new SparseProduct({ inner: 2, columns: 1, weights: Float32Array.of(2 ** 100, 1) });
    expect([...product.multiply(Float32Array.of(2 ** -149, -0), 1)]).toEqual([2 ** -49]);
    expect(product.nonZeros).toBe(1);
  });

  test('0 · ∞ and 0 · NaN are skipped', () => {
    const weights = Float32Array.of(Number.POSITIVE_INFINITY, Number.NaN, 3, 4);
    const product = new SparseProduct({ inner: 2, columns: 2, weights });
    expect([...product.multiply(Float32Array.of(0, 2), 1)]).toEqual([6, 8]);
    expect([...product.multiply(Float32Array.of(1, 2), 1)]).toEqual([Infinity, Number.NaN]);
  });
});
