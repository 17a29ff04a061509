import type { Density } from '../../ports/accelerator.ts';
import type { GraphCall, GraphSignature } from '../graph-call.ts';
import type { LayerWork } from '../indexed-layers/layer-plan.ts';
import type { InputRows } from '../indexed-layers/plan-layers.ts';

/** What the accelerator and its session thread say to each other. A slab travels with a message: it has one owner at a time. */

export type Provider = 'cpu' | 'webgpu';

export interface SessionOptions {
  provider: Provider;
  intraOpThreads: number;
  executionMode: 'sequential' | 'parallel';
}

export type SessionCommand =
  /**
   * `sparseInputs`: a second session is to compute the products of these inputs over their non-zeros alone. `inputRows`: another one is to have the
   * graph's layers, where it consists of nothing else.
   */
  | {
      kind: 'create';
      graph: Uint8Array<ArrayBuffer>;
      options: SessionOptions;
      sparseInputs?: readonly string[];
      inputRows?: InputRows;
    }
  | ({ kind: 'run'; session: number } & GraphCall)
  | { kind: 'release'; session: number };

export type SessionAnswer =
  | {
      kind: 'created';
      session: number;
      signature: GraphSignature;
      sparse?: SparseSession;
      layers?: LayersSession;
    }
  /** `computeMs`: as the thread itself saw it; `density`: of what was multiplied over its non-zeros. */
  | { kind: 'ran'; slab: ArrayBuffer; computeMs: number; density?: Density }
  | { kind: 'released' }
  /** `slab`: that of a failed run. */
  | { kind: 'failed'; message: string; slab?: ArrayBuffer };

/** The session that skips zeros, or why there is none. */
export type SparseSession = { session: number } | { refused: string };

/** The session that has the graph's layers in WebAssembly. */
export interface LayersSession {
  session: number;
  work: LayerWork;
}

export interface SessionCall {
  call: number;
  command: SessionCommand;
}

export interface SessionReply {
  call: number;
  answer: SessionAnswer;
}
