import { z } from 'zod';
import { ELEMENT_BYTES } from '../../core/request/tensor.ts';
import type { GraphCall, SlabTensor } from '../graph-call.ts';

declare global {
  interface JSON {
    /** In every Node from 21 on, and not yet in TypeScript's library. */
    rawJSON(text: string): unknown;
  }
}

/**
 * How numbers travel: as bytes after the JSON (the binary tensor data extension), or as JSON.
 * Sources: Open Inference Protocol, V2, REST; Triton's extension "binary tensor data".
 */
export type TensorForm = 'binary' | 'json';

/** Bytes of the JSON at the beginning of a body that has tensors after it. */
export const JSON_LENGTH_HEADER = 'inference-header-content-length';

export interface InferMessage {
  headers: Record<string, string>;
  body: Uint8Array<ArrayBuffer>;
}

/** A server's answer that is not what was asked for. */
export class AnswerError extends Error {
  /** Of HTTP, where it was no success. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/**
 * @param id the answer's too; the protocol lets it be absent, and servers of KServe that hand it through then fail
 * @param timeoutUs what the server may take, µs; Triton's parameter `timeout`, which servers without it ignore
 */
export function encodeInfer(
  { slab, feeds, outputs }: Pick<GraphCall, 'slab' | 'feeds' | 'outputs'>,
  form: TensorForm,
  id: string,
  timeoutUs: number,
): InferMessage {
  const inputs = feeds.map((tensor) => sentTensor(slab, tensor));
  const isBinary = form === 'binary';
  const json = JSON.stringify({
    id,
    inputs: inputs.map(({ contents, ...described }) => ({
      ...described,
      ...(isBinary
        ? { parameters: { binary_data_size: contents.length } }
        : { data: numbersOf(described.datatype, contents) }),
    })),
    outputs: outputs.map(({ name }) => ({ name, parameters: { binary_data: isBinary } })),
    parameters: { timeout: timeoutUs },
  });
  if (!isBinary) return { headers: { 'content-type': 'application/json' }, body: Buffer.from(json) };
  const head = Buffer.from(json);
  return {
    headers: { 'content-type': 'application/octet-stream', [JSON_LENGTH_HEADER]: String(head.length) },
    body: Buffer.concat([head, ...inputs.map(({ contents }) => contents)]),
  };
}

interface SentTensor {
  name: string;
  shape: number[];
  datatype: SlabTensor['datatype'];
  contents: Uint8Array<ArrayBuffer>;
}

/**
 * Some servers take no tensor without elements (PyTriton). The one axis that can be empty where there are candidates is that of a sequence, and
 * a row of zeros that its length does not count is what shorter sequences of a batch are filled up with anyway.
 */
function sentTensor(slab: ArrayBuffer, { name, datatype, offset, dims }: SlabTensor): SentTensor {
  const shape = dims.map((size) => Math.max(1, size));
  const bytes = elementsOf(shape) * ELEMENT_BYTES[datatype];
  const contents = dims.includes(0) ? new Uint8Array(bytes) : new Uint8Array(slab, offset, bytes);
  return { name, shape, datatype, contents };
}

function numbersOf(datatype: SlabTensor['datatype'], contents: Uint8Array<ArrayBuffer>): unknown[] {
  const { buffer, byteOffset, byteLength } = contents;
  return datatype === 'FP32'
    ? Array.from(new Float32Array(buffer, byteOffset, byteLength / ELEMENT_BYTES.FP32))
    : Array.from(new BigInt64Array(buffer, byteOffset, byteLength / ELEMENT_BYTES.INT64), jsonInteger);
}

/** All its digits: as a number of JavaScript it would lose those beyond 2^53. */
function jsonInteger(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value));
}

/** What is absent may also be null: KServe writes so. */
const answerSchema = z.object({
  outputs: z.array(
    z.object({
      name: z.string(),
      datatype: z.string(),
      shape: z.array(z.int().min(0)),
      data: z.array(z.unknown()).nullish(),
      parameters: z.object({ binary_data_size: z.int().min(0).nullish() }).nullish(),
    }),
  ),
});

type AnsweredTensor = z.output<typeof answerSchema>['outputs'][number];

/**
 * Writes what a server answered to where the call wants its outputs.
 * @param jsonLength of the answer's header; undefined where all of it is JSON
 * @throws AnswerError where an output is missing, of another type or size, or the body is none of the protocol
 */
export function decodeInfer(
  body: Buffer,
  jsonLength: number | undefined,
  { slab, outputs }: Pick<GraphCall, 'slab' | 'outputs'>,
): void {
  const { answered, tail } = readAnswer(body, jsonLength);
  const places = new Map(outputs.map((tensor) => [tensor.name, tensor]));
  let at = 0;
  for (const tensor of answered) {
    const binaryBytes = tensor.parameters?.binary_data_size ?? undefined;
    const contents = binaryBytes === undefined ? undefined : tail.subarray(at, at + binaryBytes);
    at += binaryBytes ?? 0;
    const place = places.get(tensor.name);
    if (place === undefined) continue;
    places.delete(tensor.name);
    checkShape(tensor, place);
    const values = contents === undefined ? jsonFloats(tensor) : binaryFloats(tensor, contents);
    if (values.length !== elementsOf(place.dims))
      throw new AnswerError(`${tensor.name} has ${values.length} values, not ${elementsOf(place.dims)}`);
    new Float32Array(slab, place.offset, values.length).set(values);
  }
  if (places.size > 0) throw new AnswerError(`the answer lacks ${[...places.keys()].join(', ')}`);
}

function readAnswer(
  body: Buffer,
  jsonLength: number | undefined,
): { answered: AnsweredTensor[]; tail: Buffer } {
  const end = jsonLength ?? body.length;
  if (!(end >= 0 && end <= body.length))
    throw new AnswerError(`its JSON is said to have ${jsonLength} of ${body.length} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8', 0, end));
  } catch {
    throw new AnswerError('the answer is no JSON');
  }
  const parsed = answerSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new AnswerError(`the answer is none of the protocol: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  return { answered: parsed.data.outputs, tail: body.subarray(end) };
}

/** [N], or [N, 1] as some servers have it. */
function checkShape({ name, datatype, shape }: AnsweredTensor, place: SlabTensor): void {
  if (datatype !== 'FP32') throw new AnswerError(`${name} is ${datatype}, not FP32`);
  const count = elementsOf(place.dims);
  const isColumn = shape[0] === count && shape.slice(1).every((size) => size === 1);
  if (!isColumn) throw new AnswerError(`${name} has shape [${shape.join(', ')}], not [${count}]`);
}

function binaryFloats({ name }: AnsweredTensor, contents: Buffer): Float32Array {
  if (contents.length % 4 !== 0)
    throw new AnswerError(`${name} has ${contents.length} bytes: no whole numbers`);
  // A copy: the body's offset need not be a multiple of four.
  return new Float32Array(new Uint8Array(contents).buffer);
}

/** Rows of rows, or one flat list: the protocol lets servers choose. */
function jsonFloats({ name, data }: AnsweredTensor): Float32Array {
  const flat: unknown[] = (data ?? []).flat(Infinity);
  return Float32Array.from(flat, (value) => {
    if (typeof value === 'number') return value;
    throw new AnswerError(`${name} holds ${JSON.stringify(value)}, which is no number`);
  });
}

function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
