import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { murmur3, murmur3OfPair } from '../../../../src/core/rollout/murmur3.ts';

const utf8 = (text: string) => Buffer.from(text, 'utf8');
const hex = (text: string) => Buffer.from(text, 'hex');

describe('murmur3_32', () => {
  // Vectors published with other implementations (Ian Boyd's collection; the x86 32-bit of MurmurHash3.cpp).
  it.each([
    [hex(''), 0, 0],
    [hex(''), 1, 0x514e28b7],
    [hex(''), 0xffffffff, 0x81f16f39],
    [hex('ffffffff'), 0, 0x76293b50],
    [hex('21436587'), 0, 0xf55b516b],
    [hex('21436587'), 0x5082edee, 0x2362f9de],
    [hex('214365'), 0, 0x7e4a8634],
    [hex('2143'), 0, 0xa0f7b07a],
    [hex('21'), 0, 0x72661cf4],
    [hex('00000000'), 0, 0x2362f9de],
    [hex('000000'), 0, 0x85f0b427],
    [hex('0000'), 0, 0x30f4c306],
    [hex('00'), 0, 0x514e28b7],
    [utf8('aaaa'), 0x9747b28c, 0x5a97808a],
    [utf8('aaa'), 0x9747b28c, 0x283e0130],
    [utf8('aa'), 0x9747b28c, 0x5d211726],
    [utf8('a'), 0x9747b28c, 0x7fa09ea6],
    [utf8('abcd'), 0x9747b28c, 0xf0478627],
    [utf8('abc'), 0x9747b28c, 0xc84a62dd],
    [utf8('ab'), 0x9747b28c, 0x74875592],
    [utf8('Hello, world!'), 0x9747b28c, 0x24884cba],
    [utf8('ππππππππ'), 0x9747b28c, 0xd58063c1],
    [utf8('a'.repeat(256)), 0x9747b28c, 0x37405bdc],
    [utf8('abc'), 0, 0xb3dd93fa],
    [utf8('test'), 0, 0xba6bd213],
    [utf8('The quick brown fox jumps over the lazy dog'), 0, 0x2e4ff723],
    [utf8('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq'), 0, 0xee925b90],
  ])('of %o with seed %i', (bytes, seed, expected) => {
    expect(murmur3(bytes, seed)).toBe(expected);
  });

  it('of a pair of texts is that of their UTF-8 bytes with a zero between, whatever their lengths and alphabets', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({ unit: 'grapheme', maxLength: 20 }),
    );
    fc.assert(
      fc.property(text, text, (prefix, key) => {
        expect(murmur3OfPair(prefix, key)).toBe(murmur3(utf8(`${prefix}\0${key}`)));
      }),
      { numRuns: 1_000 },
    );
  });

  it('of a lone surrogate is that of the replacement character', () => {
    expect(murmur3OfPair('s', '\ud800')).toBe(murmur3OfPair('s', '\ufffd'));
  });
});
