import type { FamilyContract, InputContract } from '../request/family.ts';
import type { Tensor } from '../request/tensor.ts';
import type { CostModel } from './cost-model.ts';

/** The values of one floating-point tensor (FP32, FP64, FP16), all of them or a sample, and their moments. */
export interface ValueRun {
  readonly input: InputContract;
  /** The run is `values[start]` to `values[end - 1]` of the view, in the order of the tensor. */
  readonly start: number;
  readonly end: number;
  /** Values of the whole tensor: more than `end - start` where the run is a sample. */
  readonly tensorValues: number;
  /** Values of one row: of one candidate, one entry of a sequence, or the whole of a tensor that has no free dimension. */
  readonly rowValues: number;
  /** Over the run: how many are 0 (or −0), Σ x, Σ x². */
  readonly zeros: number;
  readonly sum: number;
  readonly sumSquares: number;
}

/**
 * What signals see of a request. It is valid until the next request is viewed: `values` is scratch memory, longer than
 * the runs in it. Nothing in it is to be written.
 */
export interface RequestView {
  readonly family: FamilyContract;
  /** N. */
  readonly candidateCount: number;
  /** Length of the longest sequence; `undefined` where the family has no sequence input. */
  readonly sequenceLength: number | undefined;
  /** The tensor of each of `family.inputs`, in that order; `undefined` where it was not sent. */
  readonly tensors: readonly (Tensor | undefined)[];
  /** Predicts the request's cost; `undefined` where nothing is known. */
  readonly costModel: CostModel | undefined;
  readonly values: Float64Array;
  /** Floating-point tensors of the request side, in full. */
  readonly requestRuns: readonly ValueRun[];
  /** Floating-point tensors of the candidate side, sampled: at most `CANDIDATE_VALUES_MAX` values together. */
  readonly candidateRuns: readonly ValueRun[];
}
