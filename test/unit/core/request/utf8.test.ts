import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLongerThan, utf8Length } from '../../../../src/core/request/utf8.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
);

describe('utf8Length', () => {
  it.each([
    ['', 0],
    ['a', 1],
    ['é', 2],
    ['€', 3],
    ['😀', 4],
    ['\ud83d', 3],
    ['\ude00\ud83d', 6],
  ])('of %j is %i', (text, bytes) => {
    expect(utf8Length(text)).toBe(bytes);
  });

  it('is what an encoder writes', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });
});

describe('isLongerThan', () => {
  it('agrees with the length', () => {
    fc.assert(
      fc.property(anyText, fc.nat({ max: 60 }), (text, bytesMax) => {
        expect(isLongerThan(text, bytesMax)).toBe(Buffer.byteLength(text) > bytesMax);
      }),
    );
  });
});
