import { putRows } from './candidate-rows.ts';
import type { CheckedItem } from './check-item.ts';
import type { SlabTensor } from './graph-call.ts';
import type { InputLayout, SentInput } from './input-layout.ts';
import { align } from './memory/slab-arena.ts';
import type { ModelHead, TileInputs } from './repository/model-version.ts';
import { planTiles, type TilePlan } from './rocs/tile-plan.ts';

const LENGTH_BYTES = 8;
const INDEX_BYTES = 8;
const SCORE_BYTES = 4;

/** How the candidates of a batch lie in tiles, and where in the slab that is written. */
interface PlacedTiles {
  plan: TilePlan;
  candidates: SlabTensor;
  requests: SlabTensor;
  slots: SlabTensor;
}

/** Where each tensor of a batch lies in its slab. */
export interface BatchPlan {
  /** Of the slab. */
  bytes: number;
  requests: number;
  /** ΣN: candidates of all requests. */
  candidates: number;
  /** By position of the layout's request inputs. */
  request: SlabTensor[];
  lengths: SlabTensor[];
  candidate: SlabTensor[];
  requestIndex: SlabTensor;
  tiles: PlacedTiles | undefined;
  /** FP32 [ΣN] each, by position of the heads. */
  outputs: SlabTensor[];
}

/**
 * Plans one call for several requests: request rows stacked [B, …], sequences padded to the longest one [B, T, …], candidate
 * rows one request after another [ΣN, …]. All tensors, outputs too, lie in one slab, each at an aligned offset.
 */
export function planBatch(
  layout: InputLayout,
  heads: readonly ModelHead[],
  items: readonly CheckedItem[],
): BatchPlan {
  let bytes = 0;
  const place = (
    name: string,
    datatype: SlabTensor['datatype'],
    dims: number[],
    size: number,
  ): SlabTensor => {
    const offset = bytes;
    bytes = align(offset + size);
    return { name, datatype, offset, dims };
  };
  const placeRows = (input: SentInput, dims: number[]): SlabTensor => {
    const rows = dims.reduce((product, size) => product * size, 1);
    return place(input.name, packedDatatype(input), [...dims, ...input.rowShape], rows * input.rowBytes);
  };
  const placeTiles = ({ candidates: inSlots, requests: ofTiles, slots }: TileInputs): PlacedTiles => {
    const plan = planTiles(requestsOf(items), items.length);
    const { tiles } = plan;
    return {
      plan,
      candidates: place(inSlots, 'INT64', [tiles, plan.slots], tiles * plan.slots * INDEX_BYTES),
      requests: place(ofTiles, 'INT64', [tiles], tiles * INDEX_BYTES),
      slots: place(slots, 'INT64', [candidates], candidates * INDEX_BYTES),
    };
  };
  const requests = items.length;
  const candidates = items.reduce((sum, item) => sum + item.count, 0);
  return {
    request: layout.request.map((input, position) =>
      placeRows(input, input.rows === 'sequence' ? [requests, longest(items, position)] : [requests]),
    ),
    lengths: layout.lengths.map(({ name }) => place(name, 'INT64', [requests], requests * LENGTH_BYTES)),
    candidate: layout.candidate.map((input) => placeRows(input, [candidates])),
    requestIndex: place(layout.requestIndex, 'INT64', [candidates], candidates * LENGTH_BYTES),
    tiles: layout.tiles === undefined ? undefined : placeTiles(layout.tiles),
    outputs: heads.map(({ name }) => place(name, 'FP32', [candidates], candidates * SCORE_BYTES)),
    requests,
    candidates,
    bytes,
  };
}

export function feedsOf(plan: BatchPlan): SlabTensor[] {
  const { tiles } = plan;
  const laidOut = tiles === undefined ? [] : [tiles.candidates, tiles.requests, tiles.slots];
  return [...plan.request, ...plan.lengths, ...plan.candidate, plan.requestIndex, ...laidOut];
}

/** Writes the items into the slab as the plan says. Every byte that the graph reads is written: slabs are reused. */
export function packBatch(
  layout: InputLayout,
  items: readonly CheckedItem[],
  plan: BatchPlan,
  slab: ArrayBuffer,
): void {
  const bytes = new Uint8Array(slab);
  layout.request.forEach((input, position) => {
    const tensor = plan.request[position];
    if (tensor !== undefined) packRequestRows(bytes, tensor, input, items, position);
  });
  plan.lengths.forEach((tensor, position) => {
    const lengths = new BigInt64Array(slab, tensor.offset, items.length);
    items.forEach((item, row) => {
      lengths[row] = BigInt(item.lengths[position] ?? 0);
    });
  });
  plan.candidate.forEach((tensor, position) => {
    const { rowBytes = 0 } = layout.candidate[position] ?? {};
    let at = tensor.offset;
    for (const { candidate } of items) {
      const rows = candidate[position];
      if (rows !== undefined) at = putRows(slab, at, rows, rowBytes);
    }
  });
  packRequestIndex(new BigInt64Array(slab, plan.requestIndex.offset, plan.candidates), items);
  if (plan.tiles !== undefined) packTiles(slab, plan.tiles);
}

function packTiles(slab: ArrayBuffer, { plan, candidates, requests, slots }: PlacedTiles): void {
  new BigInt64Array(slab, candidates.offset, plan.candidates.length).set(plan.candidates);
  new BigInt64Array(slab, requests.offset, plan.requests.length).set(plan.requests);
  new BigInt64Array(slab, slots.offset, plan.slotOf.length).set(plan.slotOf);
}

/** Each request's rows at its place; zeros where a sequence is shorter than the longest. */
function packRequestRows(
  bytes: Uint8Array,
  tensor: SlabTensor,
  input: SentInput,
  items: readonly CheckedItem[],
  position: number,
): void {
  const stride = input.rowBytes * (input.rows === 'sequence' ? longest(items, position) : 1);
  items.forEach((item, row) => {
    const start = tensor.offset + row * stride;
    bytes.fill(0, put(bytes, start, item.request[position]), start + stride);
  });
}

/** The request of each candidate, one request after another. */
function requestsOf(items: readonly CheckedItem[]): BigInt64Array {
  const requests = new BigInt64Array(items.reduce((sum, item) => sum + item.count, 0));
  packRequestIndex(requests, items);
  return requests;
}

function packRequestIndex(index: BigInt64Array, items: readonly CheckedItem[]): void {
  let at = 0;
  items.forEach((item, row) => {
    index.fill(BigInt(row), at, at + item.count);
    at += item.count;
  });
}

/** @returns the offset after what was written */
function put(bytes: Uint8Array, at: number, contents: Uint8Array | undefined): number {
  if (contents === undefined) return at;
  bytes.set(contents, at);
  return at + contents.length;
}

function longest(items: readonly CheckedItem[], position: number): number {
  return items.reduce((max, item) => Math.max(max, item.requestRows[position] ?? 0), 0);
}

function packedDatatype(input: SentInput): SlabTensor['datatype'] {
  if (input.datatype === 'FP32' || input.datatype === 'INT64') return input.datatype;
  throw new RangeError(`${input.name}: ${input.datatype} cannot be packed`);
}

/** Each item's values of each head, copied out of the slab: [item][head] FP32 [count]. */
export function unpackHeads(
  items: readonly CheckedItem[],
  plan: BatchPlan,
  slab: ArrayBuffer,
): Float32Array[][] {
  let at = 0;
  return items.map(({ count }) => {
    const heads = plan.outputs.map(({ offset }) =>
      new Float32Array(slab, offset + at * SCORE_BYTES, count).slice(),
    );
    at += count;
    return heads;
  });
}
