import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fp32, int64, readFp32, readIds, tensor, text } from '../../../src/client/tensors.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import { checkTensorSize } from '../../../src/core/request/tensor-size.ts';

describe('tensors', () => {
  it('gives FP32 numbers back, of any shape', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }), (rows, columns) => {
        const values = Float32Array.from({ length: rows * columns }, (_, index) =>
          Math.fround(index / 7 - 3),
        );
        const made = fp32('item', [rows, columns], values);
        expect(checkTensorSize(made, 'FP32', 8, 'item')).toBe(rows * columns);
        expect(readFp32(made.contents)).toEqual(values);
      }),
    );
  });

  it('reads FP32 bytes that are not aligned', () => {
    const bytes = Buffer.concat([Buffer.from([7]), fp32('x', [2], [1.5, -2]).contents]);
    expect([...readFp32(bytes.subarray(1))]).toEqual([1.5, -2]);
  });

  it('gives 64-bit ids back', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), (ids) => {
        const made = int64('ids', ids);
        expect(made.shape).toEqual([ids.length]);
        expect(readIds(made)).toEqual(ids.map(String));
      }),
    );
  });

  it('gives texts back, whatever is in them', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
        const made = text('ids', texts);
        expect(checkTensorSize(made, 'BYTES', 8, 'ids')).toBe(texts.length);
        expect(readIds(made)).toEqual(texts);
      }),
    );
  });

  it.each([
    ['FP64', [1.25, -3], Buffer.from(Float64Array.of(1.25, -3).buffer)],
    ['INT32', [-1, 7], Buffer.from(Int32Array.of(-1, 7).buffer)],
    ['INT8', [-128, 127], Buffer.from(Int8Array.of(-128, 127).buffer)],
    ['UINT8', [0, 255], Buffer.from([0, 255])],
    ['BOOL', [true, 0], Buffer.from([1, 0])],
    ['INT64', [1, 2n], Buffer.from(BigInt64Array.of(1n, 2n).buffer)],
  ] as const)('writes %s little-endian', (datatype, values, contents) => {
    const made = tensor('x', datatype, [2], values);
    expect(made).toMatchObject({ datatype, shape: [2] });
    expect(made.contents.equals(contents)).toBe(true);
  });

  it.each([
    ['too few values', () => fp32('x', [2, 2], [1, 2, 3]), /3 values for \[2,2\].*allowed: 4 values/],
    ['a shape that is none', () => fp32('x', [-1], []), /allowed: a shape of whole numbers/],
    ['a text among numbers', () => tensor('x', 'FP32', [1], ['1']), /element 0 of tensor "x".*got "1"/],
    ['a fraction as an id', () => int64('x', [1, 1.5]), /element 1 of tensor "x".*got 1.5/],
    ['an id beyond 2^53 as a number', () => int64('x', [2 ** 53]), /as bigint/],
    ['an id beyond 64 bits', () => int64('x', [2n ** 63n]), /64 bits/],
    ['a byte that is too large', () => tensor('x', 'UINT8', [1], [256]), /0 to 255/],
    ['a flag that is none', () => tensor('x', 'BOOL', [1], [2]), /true, false/],
    ['a number among texts', () => tensor('x', 'BYTES', [1], [2]), /texts for BYTES/],
    ['ids in floats', () => readIds(fp32('x', [1], [1])), /INT64, BYTES/],
    [
      'texts that end too early',
      () => readIds({ ...text('x', ['abc']), contents: text('x', ['abc']).contents.subarray(0, 6) }),
      /ends within an element/,
    ],
  ])('refuses %s, saying what is allowed', (_name, make, message) => {
    expect(make).toThrow(MillraceError);
    expect(make).toThrow(message);
  });
});
