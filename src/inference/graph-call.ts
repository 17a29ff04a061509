import type { Density } from '../ports/accelerator.ts';

/** A tensor in a slab. */
export interface SlabTensor {
  name: string;
  datatype: 'FP32' | 'INT64';
  /** Bytes from the start of the slab. */
  offset: number;
  dims: number[];
}

export interface GraphValue {
  name: string;
  /** ONNX element type as onnxruntime names it; `undefined` where the value is no tensor of a type that is known here. */
  type: string | undefined;
  /** A name where the size is free. */
  shape: (number | string)[];
}

/** A graph's inputs and outputs as its file, or its server, says. */
export interface GraphSignature {
  inputs: GraphValue[];
  outputs: GraphValue[];
}

/** One run of a model's graph. The slab holds what goes in, and has room for what comes out. */
export interface GraphCall {
  slab: ArrayBuffer;
  feeds: SlabTensor[];
  outputs: SlabTensor[];
  /** On the clock's monotonic time: nobody waits for the answer any longer. */
  deadlineMs?: number | undefined;
}

/** `slab`: where the outputs are, which need not be the object that was given; of a failed call, where it is still of use. */
export type GraphAnswer =
  | { kind: 'ran'; slab: ArrayBuffer; computeMs: number; density?: Density }
  | { kind: 'failed'; message: string; slab?: ArrayBuffer; computeMs: number }
  /** What computes could not be reached in time: no fault of what was given. */
  | { kind: 'unavailable'; message: string; slab: ArrayBuffer };

/** The graph of a loaded version, wherever it computes. */
export type RunGraph = (call: GraphCall) => Promise<GraphAnswer>;

/** It, by whichever of its kernels is named. */
export type RunKernel = (call: GraphCall, kernel: string) => Promise<GraphAnswer>;
