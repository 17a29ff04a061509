import type { AttributeProto } from './onnx-proto.ts';

/** A number, or the name of a size that each call decides. */
export type Dim = number | string;

/** A tensor whose values the file holds. */
export interface OnnxConstant {
  /** `TensorProto_DataType`. */
  readonly type: number;
  readonly dims: readonly number[];
  /** Little-endian, row-major. */
  readonly bytes: Uint8Array;
}

export interface OnnxNode {
  readonly op: string;
  /** Unique in its graph, for messages: the file's own name, or `<op> → <first output>`. */
  readonly name: string;
  /** An optional input that is left out is ''. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: readonly AttributeProto[];
}

export interface OnnxValue {
  readonly name: string;
  readonly type: number;
  /** `undefined` where not even the number of axes is written down. */
  readonly shape: readonly Dim[] | undefined;
}

/** A graph of one model file, its nodes in an order in which they can run. */
export interface OnnxGraph {
  readonly name: string;
  readonly irVersion: bigint;
  /** Of the default domain, the only one. */
  readonly opset: number;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly constants: ReadonlyMap<string, OnnxConstant>;
  readonly nodes: readonly OnnxNode[];
}
