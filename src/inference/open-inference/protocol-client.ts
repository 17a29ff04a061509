import type { GraphCall, GraphSignature, GraphValue } from '../graph-call.ts';
import type { TensorForm } from './tensors.ts';

/** A model as a server names it. */
export interface ServedModel {
  name: string;
  /** The server's choice where undefined. */
  version: string | undefined;
}

/** How long an attempt may take: `signal` ends it, and `leftMs` is for the server to know. */
export interface Attempt {
  signal: AbortSignal;
  leftMs: number;
}

/**
 * The Open Inference Protocol, over HTTP or gRPC. Each call is one attempt, and fails with Unavailable where the server is to be asked again, or with
 * AnswerError.
 */
export interface ProtocolClient {
  /** Fails with Unavailable as long as the server says that it is not ready; one that has nothing to say of it is. */
  ready(attempt: Attempt): Promise<void>;
  /** What the server says that a model takes and gives; undefined where it does not say. */
  signature(model: ServedModel, attempt: Attempt): Promise<GraphSignature | undefined>;
  /** The most requests that the server puts together by itself. */
  batchSizeMax(model: ServedModel, attempt: Attempt): Promise<number>;
  /** Writes the outputs to the call's slab. A model that the server lacks is one that it has not loaded again yet. */
  infer(model: ServedModel, form: TensorForm, call: GraphCall, attempt: Attempt): Promise<void>;
  close(): void;
}

/** Bytes of metadata, and of what an answer says beside its numbers: never so many. */
export const HEAD_BYTES_MAX = 1024 * 1024;

/** @param numberBytesMax the longest that a number is in an answer */
export function answerBytesMax({ outputs }: GraphCall, numberBytesMax: number): number {
  return HEAD_BYTES_MAX + outputs.reduce((sum, { dims }) => sum + (dims[0] ?? 0), 0) * numberBytesMax;
}

/** What the server may take, µs: Triton's parameter `timeout`, which servers without it ignore. */
export function timeoutUs({ leftMs }: Attempt): number {
  return Math.max(1, Math.round(leftMs * 1_000));
}

const ELEMENT_TYPE: Readonly<Record<string, string>> = { FP32: 'float32', INT64: 'int64' };

interface DescribedTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
}

export function graphSignature(
  inputs: readonly DescribedTensor[],
  outputs: readonly DescribedTensor[],
): GraphSignature | undefined {
  if (inputs.length === 0) return undefined;
  return { inputs: inputs.map(graphValue), outputs: outputs.map(graphValue) };
}

function graphValue({ name, datatype, shape }: DescribedTensor): GraphValue {
  return {
    name,
    type: ELEMENT_TYPE[datatype] ?? datatype,
    shape: shape.map((size) => (size === -1 ? 'any' : size)),
  };
}
