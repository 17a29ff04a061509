import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import { planTiles } from '../../../../src/inference/rocs/tile-plan.ts';

export type Feeds = Record<string, Tensor>;

export async function openGraph(graph: OnnxGraph): Promise<InferenceSession> {
  return InferenceSession.create(writeGraph(graph), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
    graphOptimizationLevel: 'all',
  });
}

/** Random rows: of the request's inputs `requests` many, of the candidate's one per entry of `requestOf`. */
export function randomFeeds(
  { inputs }: OnnxGraph,
  groups: readonly (readonly string[])[],
  requestOf: readonly number[],
  requests: number,
  sequence: number,
  random: { next(): number },
): Feeds {
  const feeds: Feeds = {};
  for (const { name, type, shape = [] } of inputs) {
    const rows = groups[0]?.includes(name) ? requests : requestOf.length;
    const dims = [rows, ...shape.slice(1).map((size) => (typeof size === 'number' ? size : sequence))];
    const size = dims.reduce((product, each) => product * each, 1);
    feeds[name] =
      type === 7
        ? new Tensor(
            'int64',
            BigInt64Array.from({ length: size }, () => BigInt(Math.floor(random.next() * sequence) + 1)),
            dims,
          )
        : new Tensor(
            'float32',
            Float32Array.from({ length: size }, () => random.next() * 2 - 1),
            dims,
          );
  }
  return feeds;
}

/** Request inputs with their row repeated for each candidate: what the model as it was given takes. */
export function broadcastFeeds(
  feeds: Feeds,
  request: readonly string[],
  requestOf: readonly number[],
): Feeds {
  return Object.fromEntries(
    Object.entries(feeds).map(([name, tensor]) => [
      name,
      request.includes(name) ? repeat(tensor, requestOf) : tensor,
    ]),
  );
}

function repeat(tensor: Tensor, rows: readonly number[]): Tensor {
  const size = tensor.dims.slice(1).reduce((product, each) => product * each, 1);
  const dims = [rows.length, ...tensor.dims.slice(1)];
  const { data } = tensor;
  if (data instanceof BigInt64Array) {
    const out = new BigInt64Array(rows.length * size);
    rows.forEach((row, n) => void out.set(data.subarray(row * size, (row + 1) * size), n * size));
    return new Tensor('int64', out, dims);
  }
  if (!(data instanceof Float32Array)) throw new TypeError('only FP32 and INT64');
  const out = new Float32Array(rows.length * size);
  rows.forEach((row, n) => void out.set(data.subarray(row * size, (row + 1) * size), n * size));
  return new Tensor('float32', out, dims);
}

export function indexFeeds(requestOf: readonly number[], requests: number): Feeds {
  const index = BigInt64Array.from(requestOf, BigInt);
  const plan = planTiles(index, requests);
  return {
    request_index: new Tensor('int64', index, [index.length]),
    tile_candidates: new Tensor('int64', plan.candidates, [plan.tiles, plan.slots]),
    tile_request: new Tensor('int64', plan.requests, [plan.tiles]),
    candidate_slot: new Tensor('int64', plan.slotOf, [index.length]),
  };
}

export async function runGraph(session: InferenceSession, feeds: Feeds): Promise<Map<string, Float32Array>> {
  const taken = Object.fromEntries(session.inputNames.map((name) => [name, feeds[name] ?? missing(name)]));
  const outputs = await session.run(taken);
  return new Map(session.outputNames.map((name) => [name, outputs[name]?.data as Float32Array]));
}

function missing(name: string): never {
  throw new RangeError(`no value for ${name}`);
}
