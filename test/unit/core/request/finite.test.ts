import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstNonFinite } from '../../../../src/core/request/finite.ts';
import { BLOCK_BYTES } from '../../../../src/core/request/finite-blocks.ts';
import { DATATYPES } from '../../../../src/core/request/tensor.ts';
import { numbers, unaligned } from './requests.ts';

/** The slow way: read each value. An FP16 value is finite unless its exponent bits are all set. */
const IS_FINITE = {
  FP32: { bytes: 4, at: (contents: Buffer, byte: number) => Number.isFinite(contents.readFloatLE(byte)) },
  FP64: { bytes: 8, at: (contents: Buffer, byte: number) => Number.isFinite(contents.readDoubleLE(byte)) },
  FP16: { bytes: 2, at: (contents: Buffer, byte: number) => (contents.readUInt16LE(byte) >> 10) % 32 !== 31 },
} as const;

/** Bytes that are often parts of infinities, NaN and the largest finite values. */
const bytes = fc.array(
  fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0x7f, 0xff, 0x80, 0x7c, 0xfc, 0xf0, 0xef, 0x7e)),
  { maxLength: 160 },
);

describe('firstNonFinite', () => {
  it.each(['FP32', 'FP64', 'FP16'] as const)(
    'of %s is the first that reading each value finds',
    (datatype) => {
      const { bytes: elementBytes, at } = IS_FINITE[datatype];
      fc.assert(
        fc.property(bytes, (raw) => {
          const contents = unaligned(Uint8Array.from(raw.slice(0, raw.length - (raw.length % elementBytes))));
          let first = -1;
          for (let i = contents.length / elementBytes - 1; i >= 0; i--)
            if (!at(contents, i * elementBytes)) first = i;
          expect(firstNonFinite(contents, datatype)).toBe(first);
        }),
        { numRuns: 500 },
      );
    },
  );

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('finds %d anywhere', (odd) => {
    for (const datatype of ['FP32', 'FP64'] as const)
      for (let index = 0; index < 11; index++) {
        const values = Array.from({ length: 11 }, (_, i) => (i === index ? odd : 3.4e38));
        expect(firstNonFinite(numbers('x', datatype, [11], values).contents, datatype)).toBe(index);
      }
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'finds the first %d of a large tensor, in whichever block it is',
    (odd) => {
      const block = BLOCK_BYTES / 4;
      for (const length of [block - 1, block, block + 1, 3 * block, 3 * block + 5]) {
        const values = Float32Array.from({ length }, (_, i) =>
          i % 2 === 0 ? 3.4028234663852886e38 : -1e-45,
        );
        const contents = (): Buffer => unaligned(new Uint8Array(values.slice().buffer));
        expect(firstNonFinite(contents(), 'FP32')).toBe(-1);
        for (const index of [0, 1, 17, block - 1, block, 2 * block + 3, length - 1].filter(
          (i) => i < length,
        )) {
          const spoilt = contents();
          spoilt.writeFloatLE(odd, 4 * index);
          spoilt.writeFloatLE(odd, 4 * (length - 1));
          expect(firstNonFinite(spoilt, 'FP32')).toBe(index);
        }
        expect(firstNonFinite(contents(), 'FP32')).toBe(-1);
      }
    },
  );

  it('holds every value of a datatype without NaN to be finite', () => {
    const contents = Buffer.alloc(64, 0xff);
    const without = DATATYPES.filter((datatype) => !datatype.startsWith('FP'));
    expect(without.map((datatype) => firstNonFinite(contents, datatype))).toEqual(without.map(() => -1));
  });
});
