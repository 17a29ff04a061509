import type { OnnxGraph } from '../onnx-file/graph.ts';
import { INDEX_INPUTS } from '../rocs/lowering.ts';
import { planTiles } from '../rocs/tile-plan.ts';
import { type TrialFeeds, type TrialTensor, tableRows } from '../rocs/trial-batch.ts';
import { REQUEST_INDEX } from './made-inputs.ts';
import { type InputPlan, isSequenceInput, type PlannedInput } from './planned-input.ts';

/** A made-up request: what it would send, and the lengths of its sequences. */
export interface MadeRequest {
  readonly candidates: number;
  /** Of each of its sequences. */
  readonly rows: number;
  /** By input: of the request's side without an axis for rows, of the candidates' with theirs. */
  readonly tensors: ReadonlyMap<string, TrialTensor>;
}

/** Any table has these rows. */
const IDS_WITHOUT_TABLE = 2;

/** Numbers in [-1, 1); whole numbers that pick rows of a table that has them. */
export function madeRequest(
  graph: OnnxGraph,
  { inputs }: InputPlan,
  { candidates, rows }: Pick<MadeRequest, 'candidates' | 'rows'>,
  random: { next(): number },
): MadeRequest {
  const tensors = inputs.map((input): [string, TrialTensor] => {
    const shape = input.rowShape.map((size) => (typeof size === 'number' ? size : rows));
    const dims = input.side === 'candidate' ? [candidates, ...shape] : shape;
    if (input.lengthOf !== undefined) return [input.name, int64(dims, () => rows)];
    if (input.datatype === 'FP32') return [input.name, float32(dims, () => random.next() * 2 - 1)];
    const bound = tableRows(graph, input.name) ?? IDS_WITHOUT_TABLE;
    return [input.name, int64(dims, () => Math.floor(random.next() * bound))];
  });
  return { candidates, rows, tensors: new Map(tensors) };
}

/** One request as the file was given takes it. */
export function feedsAlone(plan: InputPlan, request: MadeRequest): TrialFeeds {
  const feeds = plan.inputs.map((input): [string, TrialTensor] => {
    const tensor = request.tensors.get(input.name) ?? float32([0], () => 0);
    if (input.side === 'candidate' || input.rows === 'none') return [input.name, tensor];
    if (input.rows === 'one') return [input.name, { ...tensor, dims: [1, ...tensor.dims] }];
    return [input.name, stacked(input, new Array<MadeRequest>(request.candidates).fill(request))];
  });
  return { ...Object.fromEntries(feeds), ...indexFeeds(new Array<number>(request.candidates).fill(0), 1) };
}

/**
 * Several requests as the graph of a version takes them: rows stacked, sequences padded to the longest.
 *
 * @param requestOf by candidate; the candidates of a request in their order
 * @param padding what stands in rows of padding
 */
export function feedsTogether(
  { inputs }: InputPlan,
  requests: readonly MadeRequest[],
  requestOf: readonly number[],
  padding: () => number,
  paddedRows = 0,
): TrialFeeds {
  const longest = requests.reduce((max, { rows }) => Math.max(max, rows), paddedRows);
  const feeds = inputs.map((input): [string, TrialTensor] => {
    if (input.side === 'candidate') return [input.name, scattered(input, requests, requestOf)];
    return [input.name, stacked(input, requests, isSequenceInput(input) ? longest : undefined, padding)];
  });
  return { ...Object.fromEntries(feeds), ...indexFeeds(requestOf, requests.length) };
}

function indexFeeds(requestOf: readonly number[], requests: number): TrialFeeds {
  const index = BigInt64Array.from(requestOf, BigInt);
  const plan = planTiles(index, requests);
  const tensor = (data: BigInt64Array, dims: number[]): TrialTensor => ({ type: 'int64', data, dims });
  return {
    [REQUEST_INDEX]: tensor(index, [index.length]),
    [INDEX_INPUTS.tileCandidates]: tensor(plan.candidates, [plan.tiles, plan.slots]),
    [INDEX_INPUTS.tileRow]: tensor(plan.requests, [plan.tiles]),
    [INDEX_INPUTS.candidateSlot]: tensor(plan.slotOf, [index.length]),
  };
}

/** [requests, …]; a sequence with `paddedTo` rows each. */
function stacked(
  { name, datatype }: PlannedInput,
  requests: readonly MadeRequest[],
  paddedTo?: number,
  padding: () => number = () => 0,
): TrialTensor {
  const tensors = requests.flatMap(({ tensors: own }) => own.get(name) ?? []);
  const [first] = tensors;
  const rowDims = paddedTo === undefined ? (first?.dims ?? []) : [paddedTo, ...(first?.dims.slice(1) ?? [])];
  const size = rowDims.reduce((product, each) => product * each, 1);
  const dims = [requests.length, ...rowDims];
  const value = (n: number): number => {
    const { data } = tensors[Math.floor(n / size)] ?? { data: [] };
    return n % size < data.length ? Number(data[n % size]) : padding();
  };
  return datatype === 'FP32' ? float32(dims, value) : int64(dims, (n) => Math.round(value(n)));
}

/** [candidates, …], each request's in the places that are its own. */
function scattered(
  { name, datatype, rowShape }: PlannedInput,
  requests: readonly MadeRequest[],
  requestOf: readonly number[],
): TrialTensor {
  const size = rowShape.reduce<number>((product, each) => product * Number(each), 1);
  const places = placesOf(requestOf);
  const value = (n: number): number => {
    const at = Math.floor(n / size);
    const data = requests[requestOf[at] ?? 0]?.tensors.get(name)?.data ?? [];
    return Number(data[(places[at] ?? 0) * size + (n % size)]);
  };
  const dims = [requestOf.length, ...rowShape.map(Number)];
  return datatype === 'FP32' ? float32(dims, value) : int64(dims, value);
}

/** By candidate of a batch: which of its request's it is. */
export function placesOf(requestOf: readonly number[]): number[] {
  const seen = new Map<number, number>();
  return requestOf.map((request) => {
    const place = seen.get(request) ?? 0;
    seen.set(request, place + 1);
    return place;
  });
}

function float32(dims: readonly number[], value: (n: number) => number): TrialTensor {
  const data = Float32Array.from({ length: lengthOf(dims) }, (_, n) => value(n));
  return { type: 'float32', data, dims };
}

function int64(dims: readonly number[], value: (n: number) => number): TrialTensor {
  const data = BigInt64Array.from({ length: lengthOf(dims) }, (_, n) => BigInt(value(n)));
  return { type: 'int64', data, dims };
}

function lengthOf(dims: readonly number[]): number {
  return dims.reduce((product, each) => product * each, 1);
}
