/** A tensor in a slab. */
export interface SlabTensor {
  name: string;
  datatype: 'FP32' | 'INT64';
  /** Bytes from the start of the slab. */
  offset: number;
  dims: number[];
}

/** One run of a model's graph. The slab holds what goes in, and has room for what comes out. */
export interface GraphCall {
  slab: ArrayBuffer;
  feeds: SlabTensor[];
  outputs: SlabTensor[];
}

/** `slab`: where the outputs are, which need not be the object that was given; of a failed call, where it is still of use. */
export type GraphAnswer =
  | { kind: 'ran'; slab: ArrayBuffer; computeMs: number }
  | { kind: 'failed'; message: string; slab?: ArrayBuffer; computeMs: number };

/** The graph of a loaded version, wherever it computes. */
export type RunGraph = (call: GraphCall) => Promise<GraphAnswer>;
