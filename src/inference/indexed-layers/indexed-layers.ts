import type { SlabTensor } from '../graph-call.ts';
import { LANES, layerModule, ROW_GROUP } from './layer-code.ts';
import type { Layer, LayerHead, LayerPlan, RowValue, ScalarStep } from './layer-plan.ts';

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

type RunLayer = (x: number, y: number, rows: number, added: number, index: number) => void;

/** What is used of it here: its full types come only with those of a browser. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number }) => Memory;
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (
    module: object,
    imports: { host: { memory: object } },
  ) => { readonly exports: { run: RunLayer } };
};

interface OpenLayer {
  layer: Layer;
  run: RunLayer;
}

const PAGE_BYTES = 65_536;
const FLOAT_BYTES = 4;
const CACHE_LINE_BYTES = 64;

/** How many rows of each kind a batch has. */
interface BatchRows {
  request: number;
  candidate: number;
}

/**
 * A whole model of layers in WebAssembly: no call of a runtime, whose overhead is most of what a batch of a few small rows takes. Sums come in another
 * order than in ONNX Runtime's products: scores differ by rounding.
 */
export class IndexedLayers {
  readonly #plan: LayerPlan;
  readonly #layers: readonly OpenLayer[];
  readonly #memory: Memory;
  /** What lies before it stays from call to call. */
  readonly #firstFree: number;
  #floats: Float32Array<ArrayBuffer>;
  #integers: Int32Array<ArrayBuffer>;
  /** Of the call that runs: where each value's rows begin, bytes. */
  readonly #places = new Map<string, number>();

  constructor(plan: LayerPlan) {
    const places = placeWeights(plan.layers);
    const memory = new WebAssembly.Memory({ initial: pages(places.end) });
    this.#plan = plan;
    this.#memory = memory;
    this.#firstFree = places.end;
    this.#floats = new Float32Array(memory.buffer);
    this.#integers = new Int32Array(memory.buffer);
    this.#layers = plan.layers.map((layer, n): OpenLayer => {
      const { weights = 0, bias = 0 } = places.layers[n] ?? {};
      writeWeights(this.#floats, layer, weights, bias);
      const code = layerModule({
        inner: layer.inner,
        inputStride: strideOf(plan, layer.input),
        paddedColumns: padded(layer.columns),
        ...{ weights, bias, isAdded: layer.added !== undefined, activation: layer.activation },
      });
      const instance = new WebAssembly.Instance(new WebAssembly.Module(code), { host: { memory } });
      return { layer, run: instance.exports.run };
    });
  }

  /**
   * @param feeds the plan's inputs and its request index, in the slab
   * @param outputs where its heads go, in the slab
   * @throws RangeError where one of them is missing or of another size, or a candidate has no request
   */
  run(slab: ArrayBuffer, feeds: readonly SlabTensor[], outputs: readonly SlabTensor[]): void {
    const index = feedNamed(feeds, this.#plan.requestIndex);
    const rows: BatchRows = { candidate: index.dims[0] ?? 0, request: this.#requestsOf(feeds) };
    if (rows.candidate === 0) return;
    const indexAt = this.#placeRows(rows);
    this.#readIndex(new Int32Array(slab, index.offset, 2 * rows.candidate), rows, indexAt);
    for (const input of this.#plan.inputs) this.#readInput(slab, feedNamed(feeds, input.name), input, rows);
    for (const { layer, run } of this.#layers)
      run(
        this.#placeOf(layer.input),
        this.#placeOf(layer.result),
        grouped(rows[layer.result.rows]),
        layer.added === undefined ? 0 : this.#placeOf(layer.added),
        indexAt,
      );
    for (const output of outputs) this.#writeHead(slab, output, rows.candidate);
  }

  #requestsOf(feeds: readonly SlabTensor[]): number {
    const input = this.#plan.inputs.find(({ rows }) => rows === 'request');
    return input === undefined ? 0 : (feedNamed(feeds, input.name).dims[0] ?? 0);
  }

  /** Gives each value its place behind the weights. @returns that of the index */
  #placeRows(rows: BatchRows): number {
    const indexAt = this.#firstFree;
    let end = indexAt + grouped(rows.candidate) * FLOAT_BYTES;
    const place = (value: RowValue): void => {
      const at = Math.ceil(end / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
      this.#places.set(value.name, at);
      end = at + grouped(rows[value.rows]) * strideOf(this.#plan, value) * FLOAT_BYTES;
    };
    this.#plan.inputs.forEach(place);
    for (const { result } of this.#plan.layers) place(result);
    this.#reserve(end);
    return indexAt;
  }

  #reserve(bytes: number): void {
    const missing = pages(bytes) - this.#memory.buffer.byteLength / PAGE_BYTES;
    if (missing <= 0) return;
    this.#memory.grow(missing);
    this.#floats = new Float32Array(this.#memory.buffer);
    this.#integers = new Int32Array(this.#memory.buffer);
  }

  /** @param halves of INT64, the low one first */
  #readIndex(halves: Int32Array, { request, candidate }: BatchRows, at: number): void {
    const integers = this.#integers;
    const first = at / FLOAT_BYTES;
    for (let row = 0; row < candidate; row += 1) {
      const of = halves[2 * row] ?? 0;
      if (halves[2 * row + 1] !== 0 || of < 0 || of >= request)
        throw new RangeError(`candidate ${row} is of request ${of}, and there are ${request}`);
      integers[first + row] = of;
    }
    integers.fill(0, first + candidate, first + grouped(candidate));
  }

  /** Rows beyond the last one are zeros: whatever lay there might be numbers that are slow to multiply. */
  #readInput(
    slab: ArrayBuffer,
    { name, offset, dims }: SlabTensor,
    { rows: kind, width }: RowValue,
    rows: BatchRows,
  ): void {
    const count = rows[kind];
    if (dims[0] !== count || dims[1] !== width || dims.length !== 2)
      throw new RangeError(`${name} is [${dims.join(', ')}], expected [${count}, ${width}]`);
    const first = (this.#places.get(name) ?? 0) / FLOAT_BYTES;
    this.#floats.set(new Float32Array(slab, offset, count * width), first);
    this.#floats.fill(0, first + count * width, first + grouped(count) * width);
  }

  #writeHead(slab: ArrayBuffer, { name, offset, dims }: SlabTensor, candidates: number): void {
    const head = this.#plan.heads.find((one) => one.name === name);
    if (head === undefined || dims.length !== 1 || dims[0] !== candidates)
      throw new RangeError(`output ${name} is no head, or not [${candidates}]`);
    const out = new Float32Array(slab, offset, candidates);
    const stride = padded(head.of.width);
    const floats = this.#floats;
    let from = this.#placeOf(head.of) / FLOAT_BYTES + head.column;
    for (let row = 0; row < candidates; row += 1, from += stride) out[row] = floats[from] ?? 0;
    applySteps(out, head);
  }

  #placeOf({ name }: RowValue): number {
    const at = this.#places.get(name);
    if (at === undefined) throw new RangeError(`there is no ${name}`);
    return at;
  }
}

/** Results have whole vectors in a row, inputs what the batch has. */
function strideOf({ inputs }: LayerPlan, value: RowValue): number {
  return inputs.includes(value) ? value.width : padded(value.width);
}

function padded(columns: number): number {
  return Math.ceil(columns / LANES) * LANES;
}

function grouped(rows: number): number {
  return Math.ceil(rows / ROW_GROUP) * ROW_GROUP;
}

function placeWeights(layers: readonly Layer[]): {
  layers: { weights: number; bias: number }[];
  end: number;
} {
  let end = 0;
  const place = (floats: number): number => {
    const at = end;
    end = Math.ceil((at + floats * FLOAT_BYTES) / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
    return at;
  };
  const placed = layers.map(({ inner, columns }) => ({
    weights: place(inner * padded(columns)),
    bias: place(padded(columns)),
  }));
  return { layers: placed, end };
}

function writeWeights(floats: Float32Array, layer: Layer, weightsAt: number, biasAt: number): void {
  const { inner, columns, weights, bias } = layer;
  if (bias !== undefined) floats.set(bias, biasAt / FLOAT_BYTES);
  for (let row = 0; row < inner; row += 1)
    floats.set(
      weights.subarray(row * columns, (row + 1) * columns),
      weightsAt / FLOAT_BYTES + row * padded(columns),
    );
}

/** Each step's numbers are FP32 again, as a graph's are. */
function applySteps(values: Float32Array, { steps }: LayerHead): void {
  for (const step of steps)
    for (let n = 0; n < values.length; n += 1) values[n] = stepped(values[n] ?? 0, step);
}

function stepped(x: number, step: ScalarStep): number {
  switch (step.kind) {
    case 'sigmoid':
      return 1 / (1 + Math.exp(-x));
    case 'negate':
      return -x;
    case 'exponent':
      return Math.exp(x);
    case 'reciprocal':
      return 1 / x;
    case 'add':
      return x + step.value;
    default:
      return step satisfies never;
  }
}

function feedNamed(feeds: readonly SlabTensor[], name: string): SlabTensor {
  const feed = feeds.find((one) => one.name === name);
  if (feed === undefined) throw new RangeError(`there is no ${name}`);
  return feed;
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}
