import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleSeed, sampleStride } from '../../../../src/core/signals/sample.ts';

describe('sampleStride', () => {
  it.each([
    [8192, 32, 2048, 5],
    [2048, 32, 2048, 1],
    [2049, 1, 2048, 2],
    [0, 0, 2048, 1],
    [100, 10, 0, 101],
  ])('of %i values in rows of %i, at most %i taken, is %i', (values, rowValues, valuesMax, stride) => {
    expect(sampleStride(values, rowValues, valuesMax)).toBe(stride);
  });

  it('keeps to the size and reaches every column', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 64, max: 300 }),
        fc.integer({ min: 64, max: 4096 }),
        (columns, rows, valuesMax) => {
          const stride = sampleStride(rows * columns, columns, valuesMax);
          expect(Math.ceil((rows * columns) / stride)).toBeLessThanOrEqual(valuesMax);
          const reached = new Set<number>();
          for (let i = 0; i < columns; i++) reached.add((i * stride) % columns);
          expect(reached.size).toBe(columns);
        },
      ),
    );
  });
});

describe('sampleSeed', () => {
  it('is an unsigned 32-bit number that the id alone decides', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (id) => {
        const seed = sampleSeed(id);
        expect(seed).toBe(sampleSeed(`${id}`));
        expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32).toBe(true);
      }),
    );
  });

  it('spreads ids that differ in a digit over the starts of a stride', () => {
    const starts = Array<number>(5).fill(0);
    for (let i = 0; i < 1_000; i++) {
      const start = sampleSeed(`request-${i}`) % 5;
      starts[start] = (starts[start] ?? 0) + 1;
    }
    for (const count of starts) expect(count).toBeGreaterThan(150);
  });
});
