import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GraphCall } from '../../../../src/inference/graph-call.ts';
import { decodeInfer, encodeInfer } from '../../../../src/inference/open-inference/http-message.ts';

/** Two inputs and room for two outputs of three values each. */
function call(floats: readonly number[] = [1, -2.5], index: readonly bigint[] = [0n, 7n, -1n]): GraphCall {
  const slab = new ArrayBuffer(512);
  new Float32Array(slab, 0, floats.length).set(floats);
  new BigInt64Array(slab, 64, index.length).set(index);
  return {
    slab,
    feeds: [
      { name: 'x', datatype: 'FP32', offset: 0, dims: [1, floats.length] },
      { name: 'index', datatype: 'INT64', offset: 64, dims: [index.length] },
    ],
    outputs: [
      { name: 'a', datatype: 'FP32', offset: 128, dims: [3] },
      { name: 'b', datatype: 'FP32', offset: 192, dims: [3] },
    ],
  };
}

function floatsOf({ slab }: GraphCall, offset: number): number[] {
  return [...new Float32Array(slab, offset, 3)];
}

function json(outputs: unknown): Buffer {
  return Buffer.from(JSON.stringify({ model_name: 'm', outputs }));
}

const A = { name: 'a', datatype: 'FP32', shape: [3], data: [1, 2, 3] };
const B = { name: 'b', datatype: 'FP32', shape: [3], data: [4, 5, 6] };

describe('encodeInfer', () => {
  it('puts the bytes of each tensor after the JSON, in order, and tells the sizes', () => {
    const { headers, body } = encodeInfer(call(), 'bytes', '7', 1_500);
    const length = Number(headers['inference-header-content-length']);
    expect(JSON.parse(Buffer.from(body).toString('utf8', 0, length))).toEqual({
      id: '7',
      inputs: [
        { name: 'x', shape: [1, 2], datatype: 'FP32', parameters: { binary_data_size: 8 } },
        { name: 'index', shape: [3], datatype: 'INT64', parameters: { binary_data_size: 24 } },
      ],
      outputs: [
        { name: 'a', parameters: { binary_data: true } },
        { name: 'b', parameters: { binary_data: true } },
      ],
      parameters: { timeout: 1_500 },
    });
    const tail = Buffer.from(body).subarray(length);
    expect([tail.readFloatLE(0), tail.readFloatLE(4)]).toEqual([1, -2.5]);
    expect([0, 1, 2].map((n) => tail.readBigInt64LE(8 + 8 * n))).toEqual([0n, 7n, -1n]);
    expect(tail).toHaveLength(32);
  });

  it('writes numbers where the server takes no bytes', () => {
    const { headers, body } = encodeInfer(call(), 'numbers', '7', 1_500);
    expect(headers).toEqual({ 'content-type': 'application/json' });
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({
      inputs: [{ data: [1, -2.5] }, { data: [0, 7, -1] }],
      outputs: [{ parameters: { binary_data: false } }, { parameters: { binary_data: false } }],
    });
  });

  it.each(['bytes', 'numbers'] as const)('sends no tensor without elements (%s)', (form) => {
    const { slab, outputs } = call([1, 2]);
    const history = { name: 'history', datatype: 'FP32' as const, offset: 0, dims: [1, 0, 2] };
    const { headers, body } = encodeInfer({ slab, feeds: [history], outputs }, form, '7', 1_500);
    const length = headers['inference-header-content-length'];
    const text = Buffer.from(body).toString('utf8', 0, length === undefined ? undefined : Number(length));
    const [sent] = JSON.parse(text).inputs;
    expect(sent.shape).toEqual([1, 1, 2]);
    if (form === 'numbers') expect(sent.data).toEqual([0, 0]);
    else expect(Buffer.from(body).subarray(Number(length))).toEqual(Buffer.alloc(8));
  });

  it('keeps every digit of an integer of 64 bits in JSON', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { minLength: 1 }),
        (index) => {
          const { body } = encodeInfer(call([1], index.slice(0, 8)), 'numbers', '7', 1_500);
          const digits = /"datatype":"INT64","data":\[([^\]]*)\]/.exec(Buffer.from(body).toString())?.[1];
          expect(digits?.split(',').map(BigInt)).toEqual(index.slice(0, 8));
        },
      ),
    );
  });

  it('keeps every float of 32 bits in JSON', () => {
    fc.assert(
      fc.property(
        fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 16 }),
        (floats) => {
          const { body } = encodeInfer(call(floats), 'numbers', '7', 1_500);
          const [x] = JSON.parse(Buffer.from(body).toString()).inputs;
          expect(Float32Array.from(x.data)).toEqual(Float32Array.from(floats, (value) => value + 0));
        },
      ),
    );
  });
});

describe('decodeInfer', () => {
  it('reads bytes, JSON, and both in one answer, in the order of the answer', () => {
    const bytes = Buffer.from(Float32Array.of(7, 8, 9).buffer);
    const head = json([
      { name: 'other', datatype: 'INT64', shape: [1], parameters: { binary_data_size: 8 } },
      { ...B, data: undefined, parameters: { binary_data_size: 12 } },
      A,
    ]);
    const answered = call();
    decodeInfer(Buffer.concat([head, Buffer.alloc(8), bytes]), head.length, answered);
    expect(floatsOf(answered, 128)).toEqual([1, 2, 3]);
    expect(floatsOf(answered, 192)).toEqual([7, 8, 9]);
  });

  it('takes null for what is absent', () => {
    const bytes = Buffer.from(Float32Array.of(7, 8, 9).buffer);
    const head = json([
      { ...A, parameters: null },
      { ...B, data: null, parameters: { binary_data_size: 12 } },
    ]);
    const answered = call();
    decodeInfer(Buffer.concat([head, bytes]), head.length, answered);
    expect(floatsOf(answered, 128)).toEqual([1, 2, 3]);
    expect(floatsOf(answered, 192)).toEqual([7, 8, 9]);
  });

  it('reads columns and rows of rows', () => {
    const answered = call();
    decodeInfer(json([{ ...A, shape: [3, 1], data: [[1], [2], [3]] }, B]), undefined, answered);
    expect(floatsOf(answered, 128)).toEqual([1, 2, 3]);
  });

  it.each<[string, Buffer, number | undefined, RegExp]>([
    ['no JSON', Buffer.from('<html>'), undefined, /no JSON/],
    [
      'a NaN, which JSON has not',
      Buffer.from('{"outputs":[{"name":"a","datatype":"FP32","shape":[3],"data":[NaN,1,2]}]}'),
      undefined,
      /no JSON/,
    ],
    ['another JSON', Buffer.from('{"outputs":3}'), undefined, /none of the protocol: outputs/],
    ['an output too few', json([A]), undefined, /lacks b/],
    ['another type', json([{ ...A, datatype: 'FP64' }, B]), undefined, /a is FP64, not FP32/],
    ['another shape', json([{ ...A, shape: [1, 3] }, B]), undefined, /a has shape \[1, 3\], not \[3\]/],
    ['too few values', json([{ ...A, data: [1, 2] }, B]), undefined, /a has 2 values, not 3/],
    ['too many values', json([{ ...A, data: [1, 2, 3, 4] }, B]), undefined, /a has 4 values, not 3/],
    ['no values', json([{ ...A, data: undefined }, B]), undefined, /a has 0 values/],
    ['a text for a number', json([{ ...A, data: [1, '2', 3] }, B]), undefined, /a holds "2"/],
    ['null for a number', json([{ ...A, data: [1, null, 3] }, B]), undefined, /a holds null/],
    [
      'bytes that are not there',
      json([{ ...A, data: undefined, parameters: { binary_data_size: 12 } }, B]),
      undefined,
      /a has 0 values/,
    ],
    [
      'half a number',
      Buffer.concat([
        json([{ ...A, data: undefined, parameters: { binary_data_size: 11 } }, B]),
        Buffer.alloc(11),
      ]),
      json([{ ...A, data: undefined, parameters: { binary_data_size: 11 } }, B]).length,
      /11 bytes: no whole numbers/,
    ],
    ['a JSON longer than the answer', json([A, B]), 1_000_000, /said to have 1000000 of/],
    ['a length that is none', json([A, B]), Number.NaN, /said to have NaN/],
  ])('refuses %s', (_, body, length, reason) => {
    expect(() => decodeInfer(body, length, call())).toThrow(reason);
  });

  const long = 'y'.repeat(2_000_000);
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
  it.each([
    ['a datatype', json([{ ...A, datatype: long }, B])],
    ['a name', json([{ ...A, name: long }])],
    ['a value', json([{ ...A, data: [long, 2, 3] }, B])],
    ['a shape', json([{ ...A, shape: new Array(500_000).fill(1_234) }, B])],
    [
      'a list in a list',
      Buffer.from(`{"outputs":[{"name":"a","datatype":"FP32","shape":[3],"data":${deep}}]}`),
    ],
  ])('quotes little of %s without end', (_, body) => {
    const refusal = (): string => {
      try {
        decodeInfer(body, undefined, call());
      } catch (error) {
        return String(error);
      }
      return 'none';
    };
    expect(refusal()).toMatch(/^Error: /);
    expect(refusal().length).toBeLessThan(400);
  });

  it('throws its own error, and nothing else, whatever comes', () => {
    const answer = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .array(
          fc.record({
            name: fc.constantFrom('a', 'b', '__proto__'),
            datatype: fc.constantFrom('FP32', 'INT8'),
            shape: fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 2 }),
            data: fc.anything(),
          }),
          { maxLength: 3 },
        )
        .map((outputs) => Buffer.from(JSON.stringify({ outputs }) ?? '')),
    );
    fc.assert(
      fc.property(answer, fc.option(fc.integer({ min: -5, max: 80 }), { nil: undefined }), (body, length) => {
        try {
          decodeInfer(body, length, call());
        } catch (error) {
          expect((error as Error).constructor.name).toBe('AnswerError');
        }
      }),
      { numRuns: 500 },
    );
  });
});
