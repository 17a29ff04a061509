import type { GraphCall, GraphSignature } from '../graph-call.ts';

/** What the accelerator and its session thread say to each other. A slab travels with a message: it has one owner at a time. */

export interface SessionOptions {
  intraOpThreads: number;
  executionMode: 'sequential' | 'parallel';
}

export type SessionCommand =
  | { kind: 'create'; graph: Uint8Array<ArrayBuffer>; options: SessionOptions }
  | ({ kind: 'run'; session: number } & GraphCall)
  | { kind: 'release'; session: number };

export type SessionAnswer =
  | { kind: 'created'; session: number; signature: GraphSignature }
  | { kind: 'ran'; slab: ArrayBuffer }
  | { kind: 'released' }
  /** `slab`: that of a failed run. */
  | { kind: 'failed'; message: string; slab?: ArrayBuffer };

export interface SessionCall {
  call: number;
  command: SessionCommand;
}

export interface SessionReply {
  call: number;
  answer: SessionAnswer;
}
