import type { Dim } from '../onnx-file/graph.ts';

/** 0 is the request; a level's rows point at rows of the level before; the last one is the candidate. */
export type Level = number;

/** Of a tensor that follows from constants alone, and has no rows. */
export const CONSTANT_LEVEL: Level = -1;

/** A stretch of a value along its split axis, as a tensor of the compiled graph with a row for each row of its level. */
export interface Part {
  readonly level: Level;
  readonly name: string;
  /** Along the split axis. */
  readonly size: Dim;
  /**
   * `rows`: [rows, …]. `tiles`: candidates lie in tiles of one request each, for a value of shape [rows, q, d] as [tiles, slots · q, d],
   * for one of [rows, heads, q, d] as [tiles, heads, slots · q, d].
   */
  readonly layout: 'rows' | 'tiles';
}

/** A value of the model as it was given, and where the compiled graph has it. */
export interface TensorValue {
  readonly kind: 'tensor';
  /** `TensorProto_DataType`. */
  readonly type: number;
  /** In the model as it was given; the first axis is `ROWS` but for those of `CONSTANT_LEVEL`. */
  readonly shape: readonly Dim[];
  /** Which axis the parts divide, ≥ 1; of no meaning where there is one part. */
  readonly axis: number;
  /** In order along the axis; neighbours differ in level. */
  readonly parts: readonly Part[];
}

/** Values that the file holds. */
export interface ConstantValue {
  readonly kind: 'constant';
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
}

/** A small integer tensor that speaks of sizes, known at compile time but for their symbols. */
export interface SizesValue {
  readonly kind: 'sizes';
  readonly sizes: readonly Dim[];
  readonly isScalar: boolean;
}

export type Value = TensorValue | ConstantValue | SizesValue;
