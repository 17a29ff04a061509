import type { AcceptedRequest } from '../request/check.ts';
import { type InputContract, isSequence } from '../request/family.ts';
import { sequenceRows } from '../request/sequence.ts';
import { ELEMENT_BYTES, type Tensor } from '../request/tensor.ts';
import type { CostModel } from './cost-model.ts';
import { type ElementRange, type FloatDatatype, isFloat, readFloats } from './float-values.ts';
import type { RequestView, ValueRun } from './request-view.ts';
import { sampleSeed, sampleStride } from './sample.ts';

/** Values of the candidate side that are read per request, all its tensors together. */
export const CANDIDATE_VALUES_MAX = 2048;

const VALUES_AT_START = 8192;

/** Makes the views that signals read. It owns the memory that they lie in: one view at a time. */
export interface ViewReader {
  /** The request side is read in full; of the candidate side a sample that the requestId alone decides. */
  read(request: AcceptedRequest, costModel: CostModel | undefined): RequestView;
}

export function createViewReader(): ViewReader {
  let values = new Float64Array(VALUES_AT_START);
  return {
    read(request, costModel) {
      const totals = countFloats(request);
      const needed = totals.requestSide + CANDIDATE_VALUES_MAX + request.tensors.length;
      if (values.length < needed) values = new Float64Array(2 ** Math.ceil(Math.log2(needed)));
      const requestRuns: ValueRun[] = [];
      const candidateRuns: ValueRun[] = [];
      const seed = sampleSeed(request.requestId);
      let end = 0;
      for (let i = 0; i < request.tensors.length; i++) {
        const input = request.family.inputs[i];
        const tensor = request.tensors[i];
        if (input === undefined || tensor === undefined || !isFloat(input.datatype)) continue;
        const size = floatsOf(tensor, input.datatype);
        const rowValues = valuesPerRow(input, tensor, size, request.candidateCount);
        const sampled = input.side === 'candidate';
        const range = sampled ? sampleRange(size, rowValues, totals.candidateSide, seed) : fullRange(size);
        readFloats(tensor.contents, input.datatype, range, values, end);
        const run = runOf(input, values, end, range.count, size, rowValues);
        (sampled ? candidateRuns : requestRuns).push(run);
        end = run.end;
      }
      const { family, candidateCount, sequenceLength, tensors } = request;
      return {
        family,
        candidateCount,
        sequenceLength,
        tensors,
        costModel,
        values,
        requestRuns,
        candidateRuns,
      };
    },
  };
}

function floatsOf(tensor: Tensor, datatype: FloatDatatype): number {
  return tensor.contents.length / ELEMENT_BYTES[datatype];
}

function countFloats({ family, tensors }: AcceptedRequest): { requestSide: number; candidateSide: number } {
  let requestSide = 0;
  let candidateSide = 0;
  for (let i = 0; i < tensors.length; i++) {
    const input = family.inputs[i];
    const tensor = tensors[i];
    if (input === undefined || tensor === undefined || !isFloat(input.datatype)) continue;
    if (input.side === 'candidate') candidateSide += floatsOf(tensor, input.datatype);
    else requestSide += floatsOf(tensor, input.datatype);
  }
  return { requestSide, candidateSide };
}

function valuesPerRow(input: InputContract, tensor: Tensor, size: number, candidateCount: number): number {
  const sequence = isSequence(input) ? sequenceRows(input, tensor) : 1;
  const rows = input.side === 'candidate' ? candidateCount : sequence;
  return rows === 0 ? 0 : size / rows;
}

function fullRange(size: number): ElementRange {
  return { first: 0, stride: 1, count: size };
}

/** A tensor's part of the sample: as large as its part of the candidate side, and at least one value where it has any. */
function sampleRange(size: number, rowValues: number, candidateSide: number, seed: number): ElementRange {
  // A request without candidates has no candidate side to have a part of.
  if (size === 0) return fullRange(0);
  const stride = sampleStride(size, rowValues, Math.floor((CANDIDATE_VALUES_MAX * size) / candidateSide));
  const first = Math.min(seed % stride, Math.max(0, size - 1));
  return { first, stride, count: Math.ceil((size - first) / stride) };
}

function runOf(
  input: InputContract,
  values: Float64Array,
  start: number,
  count: number,
  tensorValues: number,
  rowValues: number,
): ValueRun {
  const end = start + count;
  let zeros = 0;
  let sum = 0;
  let sumSquares = 0;
  for (let i = start; i < end; i++) {
    const x = values[i] ?? 0;
    if (x === 0) zeros += 1;
    sum += x;
    sumSquares += x * x;
  }
  return { input, start, end, tensorValues, rowValues, zeros, sum, sumSquares };
}
