import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listNames, MillraceError, shorten } from '../../../src/core/errors.ts';

describe('listNames', () => {
  it.each([
    [0, 'none is loaded'],
    [1, 'n0'],
    [20, Array.from({ length: 20 }, (_, at) => `n${at}`).join(', ')],
    [23, `${Array.from({ length: 20 }, (_, at) => `n${at}`).join(', ')} and 3 more`],
  ])('of %d names', (count, expected) => {
    const names = new Set(Array.from({ length: count }, (_, at) => `n${at}`));
    expect(listNames(names, 'none is loaded')).toBe(expected);
  });
});

describe('shorten', () => {
  const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown;
  const loop: Record<string, unknown> = Object.assign(Object.create(null), {});
  loop['self'] = loop;
  it.each([
    ['a text', 'a "b"', '"a \\"b\\""'],
    ['a number', Number.NaN, 'NaN'],
    ['a large whole number', 2n ** 64n, '18446744073709551616'],
    ['bytes', new Uint8Array(3), '3 bytes'],
    ['nothing', undefined, 'undefined'],
    ['an object', { a: 1 }, '{"a":1}'],
    ['a list that is nested too deep', deep, 'a value of type object'],
    ['what holds itself, and has no text', loop, 'a value of type object'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
  ])('%s', (_, value, expected) => {
    expect(shorten(value)).toBe(expected);
  });

  it('is one line of at most 80 characters', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(shorten(value).length).toBeLessThanOrEqual(80);
      }),
    );
  });
});

describe('a message with advice', () => {
  it.each([
    ['it is wrong', {}, 'it is wrong. Mend it'],
    ['it is wrong.', {}, 'it is wrong. Mend it'],
    ['is it wrong?', {}, 'is it wrong? Mend it'],
    ['it is wrong', { value: 1 }, 'it is wrong (got 1). Mend it'],
  ])('%s', (what, detail, message) => {
    expect(new MillraceError('INVALID_CONFIG', what, { ...detail, advice: 'Mend it' }).message).toBe(message);
  });
});
