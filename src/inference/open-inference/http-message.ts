import * as v from 'valibot';
import { shorten } from '../../core/errors.ts';
import { mapping, problemOf, whole } from '../../core/json-values.ts';
import type { GraphCall } from '../graph-call.ts';
import { AnswerError } from './failures.ts';
import {
  floatsIn,
  floatsOfBytes,
  integersIn,
  placeOutputs,
  type SentTensor,
  sentTensor,
  type TensorForm,
} from './tensors.ts';

declare global {
  interface JSON {
    /** In every Node from 21 on, and not yet in TypeScript's library. */
    rawJSON(text: string): unknown;
  }
}

/** Sources: Open Inference Protocol, V2, REST; Triton's extension "binary tensor data". */

/** Bytes of the JSON at the beginning of a body that has tensors after it. */
export const JSON_LENGTH_HEADER = 'inference-header-content-length';

export interface InferMessage {
  headers: Record<string, string>;
  body: Uint8Array<ArrayBuffer>;
}

/**
 * @param id the answer's too; the protocol lets it be absent, and servers of KServe that hand it through then fail
 * @param timeoutUs what the server may take
 */
export function encodeInfer(
  { slab, feeds, outputs }: Pick<GraphCall, 'slab' | 'feeds' | 'outputs'>,
  form: TensorForm,
  id: string,
  timeoutUs: number,
): InferMessage {
  const inputs = feeds.map((tensor) => sentTensor(slab, tensor));
  const inBytes = form === 'bytes';
  const json = JSON.stringify({
    id,
    inputs: inputs.map(({ contents, ...described }) => ({
      ...described,
      ...(inBytes
        ? { parameters: { binary_data_size: contents.length } }
        : { data: numbersOf(described.datatype, contents) }),
    })),
    outputs: outputs.map(({ name }) => ({ name, parameters: { binary_data: inBytes } })),
    parameters: { timeout: timeoutUs },
  });
  if (!inBytes) return { headers: { 'content-type': 'application/json' }, body: Buffer.from(json) };
  const head = Buffer.from(json);
  return {
    headers: { 'content-type': 'application/octet-stream', [JSON_LENGTH_HEADER]: String(head.length) },
    body: Buffer.concat([head, ...inputs.map(({ contents }) => contents)]),
  };
}

function numbersOf(datatype: SentTensor['datatype'], contents: SentTensor['contents']): unknown[] {
  return datatype === 'FP32' ? Array.from(floatsIn(contents)) : Array.from(integersIn(contents), jsonInteger);
}

/** All its digits: as a number of JavaScript it would lose those beyond 2^53. */
function jsonInteger(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value));
}

/** What is absent may also be null: KServe writes so. */
const answerSchema = v.object({
  outputs: v.array(
    v.object({
      name: v.string(),
      datatype: v.string(),
      shape: v.array(v.pipe(whole, v.minValue(0))),
      data: v.nullish(v.array(v.unknown())),
      parameters: v.nullish(
        v.pipe(mapping, v.object({ binary_data_size: v.nullish(v.pipe(whole, v.minValue(0))) })),
      ),
    }),
  ),
});

type JsonTensor = v.InferOutput<typeof answerSchema>['outputs'][number];

/**
 * Writes what a server answered to where the call wants its outputs.
 * @param jsonLength of the answer's header; undefined where all of it is JSON
 * @throws AnswerError where an output is missing, of another type or size, or the body is none of the protocol
 */
export function decodeInfer(
  body: Buffer,
  jsonLength: number | undefined,
  call: Pick<GraphCall, 'slab' | 'outputs'>,
): void {
  const { answered, tail } = readAnswer(body, jsonLength);
  let at = 0;
  const contents = answered.map(({ parameters }) => {
    const bytes = parameters?.binary_data_size ?? undefined;
    if (bytes === undefined) return undefined;
    at += bytes;
    return tail.subarray(at - bytes, at);
  });
  placeOutputs(answered, call, (tensor, position) => {
    const bytes = contents[position];
    return bytes === undefined ? jsonFloats(tensor) : floatsOfBytes(tensor, bytes);
  });
}

function readAnswer(body: Buffer, jsonLength: number | undefined): { answered: JsonTensor[]; tail: Buffer } {
  const end = jsonLength ?? body.length;
  if (!(end >= 0 && end <= body.length))
    throw new AnswerError(`its JSON is said to have ${jsonLength} of ${body.length} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8', 0, end));
  } catch {
    throw new AnswerError('the answer is no JSON');
  }
  const parsed = v.safeParse(answerSchema, json);
  if (!parsed.success)
    throw new AnswerError(`the answer is none of the protocol: ${problemOf(parsed.issues[0])}`);
  return { answered: parsed.output.outputs, tail: body.subarray(end) };
}

/** As many axes as scores may be nested in; a list in half a million lists would take seconds to look through. */
const NESTING_MAX = 8;

/** Rows of rows, or one flat list: the protocol lets servers choose. */
function jsonFloats({ name, data }: JsonTensor): Float32Array {
  const flat: unknown[] = (data ?? []).flat(NESTING_MAX);
  return Float32Array.from(flat, (value) => {
    if (typeof value === 'number') return value;
    throw new AnswerError(`${name} holds ${shorten(value)}, which is no number`);
  });
}
