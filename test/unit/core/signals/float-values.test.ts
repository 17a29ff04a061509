import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DATATYPES } from '../../../../src/core/request/tensor.ts';
import { isFloat, readFloats } from '../../../../src/core/signals/float-values.ts';
import { numbers } from '../request/requests.ts';

const WHOLE = { first: 0, stride: 1 };

describe('readFloats', () => {
  it.each([
    [0x3c00, 1],
    [0xc000, -2],
    [0x3555, 0.333251953125],
    [0x7bff, 65504],
    [0x0400, 2 ** -14],
    [0x0001, 2 ** -24],
    [0x83ff, -1023 * 2 ** -24],
    [0x0000, 0],
    [0x8000, -0],
    [0x7c00, Number.POSITIVE_INFINITY],
    [0xfc00, Number.NEGATIVE_INFINITY],
    [0x7e00, Number.NaN],
  ])('reads the FP16 bits %i as %d', (bits, value) => {
    const out = new Float64Array(1);
    readFloats(numbers('x', 'FP16', [1], [bits]).contents, 'FP16', { ...WHOLE, count: 1 }, out, 0);
    expect(out[0]).toBe(value);
  });

  it.each(['FP32', 'FP64'] as const)(
    'takes elements of %s at a stride, and writes nothing else',
    (datatype) => {
      fc.assert(
        fc.property(
          fc.array(fc.float(), { minLength: 1, maxLength: 60 }),
          fc.nat({ max: 59 }),
          fc.integer({ min: 1, max: 7 }),
          fc.nat({ max: 3 }),
          (values, start, stride, at) => {
            const first = start % values.length;
            const wanted = values.filter((_, i) => i >= first && (i - first) % stride === 0);
            const out = new Float64Array(at + wanted.length + 1).fill(-7);
            const { contents } = numbers('x', datatype, [values.length], values);
            readFloats(contents, datatype, { first, stride, count: wanted.length }, out, at);
            expect([...out]).toEqual([...Array<number>(at).fill(-7), ...wanted, -7]);
          },
        ),
      );
    },
  );
});

describe('isFloat', () => {
  it('knows the floating-point datatypes', () => {
    expect(DATATYPES.filter(isFloat)).toEqual(['FP32', 'FP64', 'FP16']);
  });
});
