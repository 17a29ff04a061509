import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRankBy } from '../../../src/inference/rank-by.ts';

const HEADS = ['click', 'conversion'];
const HINTS = [{ name: 'weight', default: 3 }];

function score(expression: string, hints: Record<string, number> = {}): number[] {
  const heads = [Float32Array.of(0.5, 2), Float32Array.of(0.25, 4)];
  return [...compileRankBy(expression, HEADS, HINTS).score(heads, hints, 2)];
}

describe('rankBy', () => {
  test.each([
    ['click', [0.5, 2]],
    ['1.5', [1.5, 1.5]],
    ['.5e1', [5, 5]],
    ['click + conversion * 2', [1, 10]],
    ['(click + conversion) * 2', [1.5, 12]],
    ['click - conversion - 1', [-0.75, -3]],
    ['click / conversion / 2', [1, 0.25]],
    ['-click', [-0.5, -2]],
    ['--click', [0.5, 2]],
    ['2 - -click', [2.5, 4]],
    ['-(click - 1) * conversion', [0.125, -4]],
    ['min(click, conversion)', [0.25, 2]],
    ['max(click, conversion, 1)', [1, 4]],
    ['max(min(click, 1), conversion * 2)', [0.5, 8]],
    ['weight * click', [1.5, 6]],
    [' click*( 0.5+weight*conversion )', [0.625, 25]],
  ])('%s', (expression, expected) => {
    expect(score(expression)).toEqual(expected);
  });

  test('takes a hint from the request, and its default where the request has none', () => {
    expect(score('weight * click', { weight: 10 })).toEqual([5, 20]);
    expect(score('weight * click', { other: 10 })).toEqual([1.5, 6]);
  });

  test('takes no hint from the prototype', () => {
    const hints = [{ name: 'toString', default: 1 }];
    expect([...compileRankBy('toString', [], hints).score([], {}, 1)]).toEqual([1]);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('refuses the hint %s', (weight) => {
    expect(() => score('weight', { weight })).toThrowError(expect.objectContaining({ code: 'NON_FINITE' }));
  });

  test.each([
    ['', 'ends too early'],
    ['click +', 'ends too early'],
    ['click click', 'did not expect click at character 7'],
    ['(click', 'has no )'],
    ['click)', 'did not expect )'],
    ['min(click', 'has no )'],
    ['click ** 2', 'does not know *'],
    ['clicks', 'does not know clicks at character 1'],
    ['constructor', 'does not know constructor'],
    ['click[0]', 'cannot be read at character 6'],
    ['click.x', 'cannot be read'],
    ['click; 1', 'cannot be read'],
    ['`1`', 'cannot be read'],
    [`${'('.repeat(65)}click${')'.repeat(65)}`, 'nests deeper than 64'],
    ['1+'.repeat(600), 'is longer than 1024'],
  ])('refuses %j: %s', (expression, reason) => {
    expect(() => score(expression)).toThrowError(
      expect.objectContaining({ code: 'INVALID_MODEL', message: expect.stringContaining(reason) }),
    );
  });

  test('names what is allowed', () => {
    expect(() => score('clicks')).toThrowError(/allowed: .*click, conversion, weight/);
  });

  test('refuses a name that is both a head and a hint', () => {
    expect(() => compileRankBy('click', ['click'], [{ name: 'click', default: 0 }])).toThrowError(/both/);
  });

  test('keeps calls of different sizes apart', () => {
    const rankBy = compileRankBy('a * 2 + 1', ['a'], []);
    expect([...rankBy.score([Float32Array.of(1, 2, 3)], {}, 3)]).toEqual([3, 5, 7]);
    expect([...rankBy.score([Float32Array.of(4)], {}, 1)]).toEqual([9]);
    expect([...rankBy.score([Float32Array.of(5, 6, 7, 8, 9)], {}, 5)]).toEqual([11, 13, 15, 17, 19]);
    expect([...rankBy.score([new Float32Array(0)], {}, 0)]).toEqual([]);
  });

  test('computes what the same tree of operations computes', () => {
    type Tree = { text: string; value: (a: number, b: number) => number };
    const leaf = fc.oneof(
      fc.constant<Tree>({ text: 'a', value: (a) => a }),
      fc.constant<Tree>({ text: 'b', value: (_, b) => b }),
      fc.integer({ min: 0, max: 99 }).map((n): Tree => ({ text: String(n / 8), value: () => n / 8 })),
    );
    const operations = {
      '+': (x: number, y: number) => x + y,
      '-': (x: number, y: number) => x - y,
      '*': (x: number, y: number) => x * y,
      '/': (x: number, y: number) => x / y,
      min: Math.min,
      max: Math.max,
    } as const;
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        tie('tree').map((x): Tree => ({ text: `-(${x.text})`, value: (a, b) => -x.value(a, b) })),
        fc
          .tuple(fc.constantFrom('+', '-', '*', '/', 'min', 'max'), tie('tree'), tie('tree'))
          .map(([name, x, y]): Tree => {
            const text =
              name.length === 3 ? `${name}(${x.text}, ${y.text})` : `(${x.text} ${name} ${y.text})`;
            return { text, value: (a, b) => operations[name](x.value(a, b), y.value(a, b)) };
          }),
      ),
    }));
    const real = fc.float({ min: -100, max: 100, noNaN: true });
    fc.assert(
      fc.property(tree, fc.array(fc.tuple(real, real), { maxLength: 5 }), ({ text, value }, rows) => {
        fc.pre(text.length <= 1024);
        const heads = [Float32Array.from(rows, ([a]) => a), Float32Array.from(rows, ([, b]) => b)];
        const got = compileRankBy(text, ['a', 'b'], []).score(heads, {}, rows.length);
        expect([...got]).toEqual(rows.map(([a, b]) => Math.fround(value(a, b))));
      }),
    );
  });
});
