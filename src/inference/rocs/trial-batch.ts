import type { OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import type { InputGroups } from './compile.ts';
import { INDEX_INPUTS } from './lowering.ts';
import { planTiles } from './tile-plan.ts';

/** Numbers of a tensor and its shape, as onnxruntime takes them. */
export interface TrialTensor {
  readonly type: 'float32' | 'int64';
  readonly data: Float32Array | BigInt64Array;
  readonly dims: readonly number[];
}

export type TrialFeeds = Readonly<Record<string, TrialTensor>>;

/** A batch of made-up requests: a row per request for the earlier groups' inputs, one per candidate for the last one's. */
export interface TrialBatch {
  readonly requests: number;
  /** By candidate. */
  readonly requestOf: readonly number[];
  readonly feeds: TrialFeeds;
}

export interface TrialSizes {
  readonly requests: number;
  readonly requestOf: readonly number[];
  /** For every size of an input that a call decides. */
  readonly sequence: number;
}

/**
 * Numbers in [-1, 1), and whole numbers that the model can take: rows of the table that they look up, or lengths of a sequence.
 * @param graph of the model as it was given
 */
export function trialBatch(
  graph: OnnxGraph,
  groups: InputGroups,
  sizes: TrialSizes,
  random: { next(): number },
): TrialBatch {
  const earlier = new Set(groups.slice(0, -1).flat());
  const feeds = graph.inputs.map((input): [string, TrialTensor] => {
    const rows = earlier.has(input.name) ? sizes.requests : sizes.requestOf.length;
    return [input.name, trialTensor(graph, input, rows, sizes.sequence, random)];
  });
  return { requests: sizes.requests, requestOf: sizes.requestOf, feeds: Object.fromEntries(feeds) };
}

function trialTensor(
  graph: OnnxGraph,
  { name, type, shape = [] }: OnnxValue,
  rows: number,
  sequence: number,
  random: { next(): number },
): TrialTensor {
  const dims = [rows, ...shape.slice(1).map((size) => (typeof size === 'number' ? size : sequence))];
  const length = dims.reduce((product, each) => product * each, 1);
  if (type !== TensorProto_DataType.INT64) {
    return { type: 'float32', data: Float32Array.from({ length }, () => random.next() * 2 - 1), dims };
  }
  const bound = tableRows(graph, name) ?? sequence + 1;
  return {
    type: 'int64',
    data: BigInt64Array.from({ length }, () => BigInt(Math.floor(random.next() * bound))),
    dims,
  };
}

/** Of the constant table that an input picks from; `undefined` where it picks from none. */
export function tableRows({ nodes, constants }: OnnxGraph, input: string): number | undefined {
  const moved = new Set([input]);
  for (const { op, inputs, outputs } of nodes) {
    const [first = '', second = ''] = inputs;
    if (op === 'Gather' && moved.has(second)) return constants.get(first)?.dims[0];
    const isMoved = moved.has(first) && ['Cast', 'Reshape', 'Slice', 'Squeeze', 'Unsqueeze'].includes(op);
    if (isMoved) for (const output of outputs) moved.add(output);
  }
  return undefined;
}

/** For the model as it was given: rows of earlier groups repeated for each of their candidates. */
export function repeatedFeeds({ feeds, requestOf }: TrialBatch, groups: InputGroups): TrialFeeds {
  const earlier = groups.slice(0, -1).flat();
  return Object.fromEntries(
    Object.entries(feeds).map(([name, tensor]) => [
      name,
      earlier.includes(name) ? repeat(tensor, requestOf) : tensor,
    ]),
  );
}

function repeat({ type, data, dims }: TrialTensor, rows: readonly number[]): TrialTensor {
  const width = dims.slice(1).reduce((product, size) => product * size, 1);
  const repeated =
    data instanceof Float32Array
      ? new Float32Array(rows.length * width)
      : new BigInt64Array(rows.length * width);
  rows.forEach((row, n) => {
    for (let at = 0; at < width; at += 1) repeated[n * width + at] = data[row * width + at] ?? 0;
  });
  return { type, data: repeated, dims: [rows.length, ...dims.slice(1)] };
}

/** For the compiled model: its inputs as they are, and the indices that the batch planner makes. */
export function sharedFeeds(
  { feeds, requestOf, requests }: TrialBatch,
  rowOf: readonly string[],
): TrialFeeds {
  const index = BigInt64Array.from(requestOf, BigInt);
  const plan = planTiles(index, requests);
  const int64 = (data: BigInt64Array, dims: readonly number[]): TrialTensor => ({
    type: 'int64',
    data,
    dims,
  });
  return {
    ...feeds,
    [rowOf[1] ?? '']: int64(index, [index.length]),
    [INDEX_INPUTS.tileCandidates]: int64(plan.candidates, [plan.tiles, plan.slots]),
    [INDEX_INPUTS.tileRow]: int64(plan.requests, [plan.tiles]),
    [INDEX_INPUTS.candidateSlot]: int64(plan.slotOf, [index.length]),
  };
}
