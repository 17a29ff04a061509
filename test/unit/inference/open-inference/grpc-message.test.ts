import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GraphCall } from '../../../../src/inference/graph-call.ts';
import {
  decodeInfer,
  encodeInfer,
  type ModelInferResponse,
} from '../../../../src/inference/open-inference/grpc-message.ts';
import { readGrpcSchema } from '../../../../src/inference/open-inference/grpc-schema.ts';
import { PROTO_FILE, SERVICE } from './grpc-server.ts';

const MODEL = { name: 'toy', version: '1' };
const { ModelInfer } = await readGrpcSchema(PROTO_FILE);

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

interface ReadRequest {
  inputs: {
    name: string;
    datatype: string;
    shape: string[];
    contents: { fp32_contents: number[]; int64_contents: string[] } | null;
  }[];
  raw_input_contents: Buffer[];
}

/** As a server reads it from the wire. */
function sent(given: GraphCall, form: 'bytes' | 'numbers'): ReadRequest {
  const bytes = ModelInfer.requestSerialize(encodeInfer(MODEL, given, form, '7', 1_500));
  return SERVICE['ModelInfer']?.requestDeserialize(bytes) as ReadRequest;
}

/** As the client reads it from the wire. */
function answered(answer: object): ModelInferResponse {
  return ModelInfer.responseDeserialize(SERVICE['ModelInfer']?.responseSerialize(answer) as Buffer);
}

const bytesOf = (...values: number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);
const A = { name: 'a', datatype: 'FP32', shape: [3], contents: { fp32_contents: [1, 2, 3] } };
const B = { name: 'b', datatype: 'FP32', shape: [3], contents: { fp32_contents: [4, 5, 6] } };
const RAW_A = { ...A, contents: undefined };
const RAW_B = { ...B, contents: undefined };

const anyFloats = fc.array(fc.float(), { minLength: 1, maxLength: 16 });
const anyIntegers = fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), {
  minLength: 1,
  maxLength: 8,
});

describe('encodeInfer', () => {
  it('names the model, the time that is left, the inputs and the outputs', () => {
    expect(encodeInfer(MODEL, call(), 'bytes', '7', 1_500)).toEqual({
      model_name: 'toy',
      model_version: '1',
      id: '7',
      parameters: { timeout: { int64_param: 1_500 } },
      inputs: [
        { name: 'x', shape: [1, 2], datatype: 'FP32' },
        { name: 'index', shape: [3], datatype: 'INT64' },
      ],
      outputs: [{ name: 'a' }, { name: 'b' }],
      raw_input_contents: [new Uint8Array(bytesOf(1, -2.5)), expect.any(Uint8Array)],
    });
  });

  it('names no version where the server is to choose', () => {
    const unversioned = encodeInfer({ name: 'toy', version: undefined }, call(), 'bytes', '7', 1_500);
    expect(unversioned.model_version).toBe('');
  });

  it('sends raw contents of all inputs and no typed ones, or typed ones and no raw', () => {
    const raw = sent(call(), 'bytes');
    expect(raw.inputs.map(({ contents }) => contents)).toEqual([null, null]);
    expect(raw.raw_input_contents.map(({ length }) => length)).toEqual([8, 24]);
    const typed = sent(call(), 'numbers');
    expect(typed.raw_input_contents).toEqual([]);
    expect(typed.inputs[0]?.contents).toMatchObject({ fp32_contents: [1, -2.5], int64_contents: [] });
    expect(typed.inputs[1]?.contents).toMatchObject({
      fp32_contents: [],
      int64_contents: ['0', '7', '-1'],
    });
  });

  it.each(['bytes', 'numbers'] as const)('sends no tensor without elements (%s)', (form) => {
    const { slab, outputs } = call([1, 2]);
    const history = { name: 'history', datatype: 'FP32' as const, offset: 0, dims: [1, 0, 2] };
    const { inputs, raw_input_contents: raw } = sent({ slab, feeds: [history], outputs }, form);
    expect(inputs[0]?.shape).toEqual(['1', '1', '2']);
    if (form === 'numbers') expect(inputs[0]?.contents?.fp32_contents).toEqual([0, 0]);
    else expect(raw).toEqual([Buffer.alloc(8)]);
  });

  it('keeps every bit of FP32 and INT64 as raw contents', () => {
    fc.assert(
      fc.property(anyFloats, anyIntegers, (floats, integers) => {
        const [x, index] = sent(call(floats, integers), 'bytes').raw_input_contents;
        expect(x).toEqual(bytesOf(...floats));
        expect(index).toEqual(Buffer.from(BigInt64Array.from(integers).buffer));
      }),
    );
  });

  it('keeps every FP32, and every digit of an INT64, as typed contents', () => {
    fc.assert(
      fc.property(anyFloats, anyIntegers, (floats, integers) => {
        const [x, index] = sent(call(floats, integers), 'numbers').inputs;
        expect(x?.contents?.fp32_contents).toEqual([...Float32Array.from(floats)]);
        expect(index?.contents?.int64_contents.map(BigInt)).toEqual(integers);
      }),
    );
  });
});

describe('decodeInfer', () => {
  it('reads raw contents, in the order of the answer', () => {
    const given = call();
    const outputs = [{ name: 'other', datatype: 'INT64', shape: [1] }, RAW_B, RAW_A];
    decodeInfer(
      answered({ outputs, raw_output_contents: [Buffer.alloc(8), bytesOf(7, 8, 9), bytesOf(1, 2, 3)] }),
      given,
    );
    expect(floatsOf(given, 128)).toEqual([1, 2, 3]);
    expect(floatsOf(given, 192)).toEqual([7, 8, 9]);
  });

  it('reads typed contents, and columns', () => {
    const given = call();
    decodeInfer(answered({ outputs: [{ ...A, shape: [3, 1] }, B] }), given);
    expect(floatsOf(given, 128)).toEqual([1, 2, 3]);
    expect(floatsOf(given, 192)).toEqual([4, 5, 6]);
  });

  it('keeps every FP32 in either form, NaN and infinities too', () => {
    const three = fc.array(fc.float(), { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(three, fc.boolean(), (floats, isRaw) => {
        const given = call();
        const answer = isRaw
          ? { outputs: [RAW_A, RAW_B], raw_output_contents: [bytesOf(...floats), bytesOf(4, 5, 6)] }
          : { outputs: [{ ...A, contents: { fp32_contents: floats } }, B] };
        decodeInfer(answered(answer), given);
        expect(floatsOf(given, 128)).toEqual([...Float32Array.from(floats)]);
      }),
    );
  });

  const raw = (...contents: Buffer[]): object => ({ outputs: [RAW_A, RAW_B], raw_output_contents: contents });

  it.each<[string, object, RegExp]>([
    ['an output too few', { outputs: [A] }, /lacks b/],
    ['another type', { outputs: [{ ...A, datatype: 'FP64' }, B] }, /a is FP64, not FP32/],
    ['another shape', { outputs: [{ ...A, shape: [1, 3] }, B] }, /a has shape \[1, 3\], not \[3\]/],
    ['no shape', { outputs: [{ ...A, shape: [] }, B] }, /a has shape \[\], not \[3\]/],
    ['a size below zero', { outputs: [{ ...A, shape: [-3] }, B] }, /a has shape \[-3\], not \[3\]/],
    [
      'too few values',
      { outputs: [{ ...A, contents: { fp32_contents: [1, 2] } }, B] },
      /a has 2 values, not 3/,
    ],
    [
      'too many values',
      { outputs: [{ ...A, contents: { fp32_contents: [1, 2, 3, 4] } }, B] },
      /a has 4 values, not 3/,
    ],
    [
      'values of another type',
      { outputs: [{ ...A, contents: { fp64_contents: [1, 2, 3] } }, B] },
      /0 values/,
    ],
    ['no values', { outputs: [RAW_A, B] }, /a has 0 values/],
    ['raw contents of one output alone', raw(bytesOf(1, 2, 3)), /1 raw contents for 2 outputs/],
    ['too many raw values', raw(bytesOf(1, 2, 3, 4), bytesOf(4, 5, 6)), /a has 4 values, not 3/],
    ['empty raw contents', raw(Buffer.alloc(0), bytesOf(4, 5, 6)), /a has 0 values, not 3/],
    ['half a number', raw(Buffer.alloc(11), bytesOf(4, 5, 6)), /11 bytes: no whole numbers/],
  ])('refuses %s', (_, answer, reason) => {
    expect(() => decodeInfer(answered(answer), call())).toThrow(reason);
  });

  it('throws its own error, and nothing else, whatever is read from the wire', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .record({
          outputs: fc.array(
            fc.record({
              name: fc.constantFrom('a', 'b', '__proto__'),
              datatype: fc.constantFrom('FP32', 'INT8'),
              shape: fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 2 }),
              contents: fc.record({ fp32_contents: fc.array(fc.float(), { maxLength: 4 }) }),
            }),
            { maxLength: 3 },
          ),
          raw_output_contents: fc.array(
            fc.uint8Array({ maxLength: 16 }).map((contents) => Buffer.from(contents)),
            { maxLength: 3 },
          ),
        })
        .map((answer) => SERVICE['ModelInfer']?.responseSerialize(answer) as Buffer),
    );
    let decoded = 0;
    fc.assert(
      fc.property(bytes, (message) => {
        let answer: ModelInferResponse;
        try {
          answer = ModelInfer.responseDeserialize(Buffer.from(message));
        } catch {
          return; // The library ends such a call, and says so.
        }
        decoded += 1;
        try {
          decodeInfer(answer, call());
        } catch (error) {
          expect((error as Error).constructor.name).toBe('AnswerError');
        }
      }),
      { numRuns: 500 },
    );
    expect(decoded).toBeGreaterThan(100);
  });
});
