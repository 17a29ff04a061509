import type { Datatype, Tensor } from '../core/request/tensor.ts';
import type { BatchShape } from '../core/signals/cost-moments.ts';
import type { SourcedInput } from './feature-source.ts';

/** One request's part of a batch: the candidates [0, scoreLimit) are scored. */
export interface ScoreItem {
  requestTensors: readonly Tensor[];
  candidateTensors: readonly Tensor[];
  /** INT64 [N] or BYTES [N]: rows of inputs that are not sent come from the model's item tables by them. */
  candidateIds?: Tensor | null;
  /** Numbers that `rankBy` may read. */
  hints: Readonly<Record<string, number>>;
  scoreLimit: number;
}

export interface HeadScores {
  name: string;
  /** FP32 [n], one per scored candidate. */
  values: Float32Array;
}

/** What of an item came from item tables. */
export interface ItemTableUse {
  /** `<table>@<version>` of each table that was used. */
  tables: readonly string[];
  /** Scored candidates whose id a table did not have: its default row stood in. */
  unknownIds: number;
}

export interface ItemScores {
  /** Absent where all rows were sent. */
  fromTables?: ItemTableUse;
  heads: HeadScores[];
  /** FP32 [n]: what the family's `rankBy` makes of the heads. */
  scores: Float32Array;
  /**
   * Of a cascade, per candidate: the stage that scored it last, 0 the first. Scores of different stages do not compare: a candidate of a later
   * stage is better than any of an earlier one. A head that this stage does not have is NaN.
   */
  stages?: Uint8Array;
}

/** Per item: scores, or why this item alone could not be scored (bad tensor, non-finite value). */
export type ItemResult =
  | { status: 'scored'; scores: ItemScores }
  | {
      status: 'failed';
      error: Error;
      /** The model failed on it when it was computed alone: as a batch of it alone would, which rejects. It may be tried again, or be poison. */
      alone?: true;
    };

/** Values of the inputs that were multiplied, and how many of them were not zero. */
export interface Density {
  values: number;
  nonZeros: number;
}

export interface BatchResult {
  /** In the order of the batch's items. */
  items: ItemResult[];
  /** Time on the accelerator. */
  computeMs: number;
  /** Bytes packed for the accelerator and read back. */
  bytesMoved: number;
  /** What was computed in that time; absent where it is not known, or where a part of it failed. */
  shape?: BatchShape;
  /** Where the kernel went through inputs for their non-zeros. */
  density?: Density;
}

export interface AcceleratorCapabilities {
  /** `onnx-cpu`, `simulated`, … */
  backend: string;
  /** True where service times are drawn from a profile; shown wherever results of it show. */
  simulated: boolean;
  kernels: readonly string[];
  memories: readonly string[];
  datatypes: readonly Datatype[];
}

export interface LoadedModel {
  readonly family: string;
  readonly version: string;
  readonly variant: 'baseline' | 'enhanced';
  /** Those of the accelerator's kernels that can run it, the one for want of another first; all of them where it is left out. */
  readonly kernels?: readonly string[];
  /** The others, and why they cannot. */
  readonly refusedKernels?: ReadonlyMap<string, string>;
  /** Inputs whose rows whoever runs it reads from a feature source, where a request does not send them; none where it is left out. */
  readonly sources?: readonly SourcedInput[];
  /**
   * Runs one batch, its tensors in the memory domain where there is more than one. Rejects only when the whole batch failed (MillraceError
   * MODEL_FAILED); bad items fail by themselves, and so do all of them, without a rejection, where what computes could not be reached in time: that
   * is no fault of theirs.
   * @param deadlineMs on the clock's monotonic time: nobody waits for the scores any longer
   */
  run(
    items: readonly ScoreItem[],
    kernel: string,
    memory?: string,
    deadlineMs?: number,
  ): Promise<BatchResult>;
  /** Expected time for such a batch: C_R per request and C_C per candidate (the request side is shared). */
  predictMs(requests: number, candidates: number): number;
  /** Once no batch of it runs. */
  unload(): Promise<void>;
}

/** One API over every kind of hardware. A backend loads a version of a model and runs batches. */
export interface Accelerator {
  readonly capabilities: AcceleratorCapabilities;
  /**
   * Settles, with the reason, when it can compute no more and only a new process helps. Batches under way then never settle: a request that is
   * not answered here is answered by whoever gets its slot next, and is not taken for poison.
   */
  readonly failed: Promise<string>;
  /**
   * @param options.besideOthers versions that serve meanwhile are not held up by the load, where the backend can help it
   * @throws MillraceError INVALID_MODEL with the reason, where the same files would fail again; MODEL_UNAVAILABLE where what computes, or what the
   *   version needs besides, cannot be had now. Whatever was loaded before stays.
   */
  load(family: string, version: string, options?: { besideOthers?: boolean }): Promise<LoadedModel>;
  close(): Promise<void>;
}
