import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dim } from '../../../../src/inference/onnx-file/graph.ts';
import { differenceOf, productOf, quotientOf, sumOf } from '../../../../src/inference/rocs/size.ts';

/** What a size is in a call where T is 3 and rows are 7. */
function sizeIn(dim: Dim): number {
  if (typeof dim === 'number') return dim;
  const values: Record<string, number> = { T: 3, '#rows': 7 };
  return dim
    .split('+')
    .map((term) =>
      term.split('*').reduce((product, factor) => product * (values[factor] ?? Number(factor)), 1),
    )
    .reduce((sum, each) => sum + each, 0);
}

const size: fc.Arbitrary<Dim> = fc.letrec<{ size: Dim }>((tie) => ({
  size: fc.oneof(
    { maxDepth: 3 },
    fc.integer({ min: -3, max: 9 }),
    fc.constantFrom('T', '#rows'),
    fc.tuple(tie('size'), tie('size')).map((pair) => sumOf(pair)),
    fc.tuple(tie('size'), tie('size')).map((pair) => productOf(pair)),
  ),
})).size;

describe('sizes that only a call knows', () => {
  test('add, multiply and subtract as the numbers that they stand for', () => {
    fc.assert(
      fc.property(size, size, (a, b) => {
        expect(sizeIn(sumOf([a, b]))).toBe(sizeIn(a) + sizeIn(b));
        expect(sizeIn(productOf([a, b]))).toBe(sizeIn(a) * sizeIn(b) + 0);
        expect(sizeIn(differenceOf(a, b))).toBe(sizeIn(a) - sizeIn(b));
      }),
    );
  });

  test('are equal texts where they are equal', () => {
    fc.assert(
      fc.property(size, size, (a, b) => {
        expect(sumOf([a, b])).toBe(sumOf([b, a]));
        expect(differenceOf(sumOf([a, b]), b)).toBe(sumOf([a]));
        expect(differenceOf(a, a)).toBe(0);
      }),
    );
  });

  test.each<[Dim, Dim, Dim | undefined]>([
    ['8*#rows', '#rows', 8],
    ['8*T', 4, '2*T'],
    ['T+1', 'T+1', 1],
    ['T', 2, undefined],
    ['T+1', 'T', undefined],
    [12, 'T', undefined],
    ['2*T+4', 2, 'T+2'],
  ])('%s / %s is %s', (a, b, quotient) => {
    expect(quotientOf(a, b)).toBe(quotient);
  });
});
