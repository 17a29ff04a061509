import type { GraphCall } from '../graph-call.ts';
import { AnswerError } from './failures.ts';
import type { ServedModel } from './protocol-client.ts';
import {
  type AnsweredTensor,
  floatsIn,
  floatsOfBytes,
  integersIn,
  placeOutputs,
  type SentTensor,
  sentTensor,
  type TensorForm,
} from './tensors.ts';

/** Messages of schemas/open-inference.proto, as their reader and writer have them. Source: Open Inference Protocol, V2, GRPC. */

interface TypedContents {
  fp32_contents?: number[];
  /** Of decimal digits: as numbers of JavaScript they would lose those beyond 2^53. */
  int64_contents?: string[];
}

export interface ModelInferRequest {
  model_name: string;
  model_version: string;
  id: string;
  parameters: Record<string, { int64_param: number }>;
  inputs: { name: string; datatype: string; shape: number[]; contents?: TypedContents }[];
  outputs: { name: string }[];
  raw_input_contents: Uint8Array[];
}

/** What an answer has not is null, or an empty list. */
export interface ModelInferResponse {
  outputs: (AnsweredTensor & { contents: { fp32_contents: number[] } | null })[];
  raw_output_contents: Uint8Array[];
}

/**
 * @param id the answer's too
 * @param timeoutUs what the server may take
 */
export function encodeInfer(
  { name, version }: ServedModel,
  { slab, feeds, outputs }: Pick<GraphCall, 'slab' | 'feeds' | 'outputs'>,
  form: TensorForm,
  id: string,
  timeoutUs: number,
): ModelInferRequest {
  const tensors = feeds.map((tensor) => sentTensor(slab, tensor));
  const inBytes = form === 'bytes';
  return {
    model_name: name,
    model_version: version ?? '',
    id,
    parameters: { timeout: { int64_param: timeoutUs } },
    inputs: tensors.map(({ contents, ...described }) =>
      inBytes ? described : { ...described, contents: typedContents(described.datatype, contents) },
    ),
    outputs: outputs.map((output) => ({ name: output.name })),
    raw_input_contents: inBytes ? tensors.map(({ contents }) => contents) : [],
  };
}

function typedContents(datatype: SentTensor['datatype'], contents: SentTensor['contents']): TypedContents {
  return datatype === 'FP32'
    ? { fp32_contents: Array.from(floatsIn(contents)) }
    : { int64_contents: Array.from(integersIn(contents), String) };
}

/**
 * Writes what a server answered to where the call wants its outputs: in whichever form it chose.
 * @throws AnswerError where an output is missing, of another type or size
 */
export function decodeInfer(
  { outputs, raw_output_contents: raw }: ModelInferResponse,
  call: Pick<GraphCall, 'slab' | 'outputs'>,
): void {
  if (raw.length > 0 && raw.length !== outputs.length)
    throw new AnswerError(`the answer has ${raw.length} raw contents for ${outputs.length} outputs`);
  placeOutputs(outputs, call, (tensor, position) => {
    const bytes = raw[position];
    return bytes === undefined
      ? Float32Array.from(tensor.contents?.fp32_contents ?? [])
      : floatsOfBytes(tensor, bytes);
  });
}
