import { InferenceSession, Tensor } from 'onnxruntime-node';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { IndexedLayers } from '../src/inference/indexed-layers/indexed-layers.ts';
import { type LayerPlan, workOf } from '../src/inference/indexed-layers/layer-plan.ts';
import { planLayers } from '../src/inference/indexed-layers/plan-layers.ts';
import type { OnnxGraph } from '../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../src/inference/onnx-file/write-graph.ts';
import { compileGraph } from '../src/inference/rocs/compile.ts';
import {
  repeatedFeeds,
  sharedFeeds,
  type TrialFeeds,
  trialBatch,
} from '../src/inference/rocs/trial-batch.ts';
import { slabOf } from '../test/unit/inference/indexed-layers/slab.ts';
import { layered, type Model } from '../test/unit/inference/rocs/models.ts';
import { percentile } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

const REQUESTS = 16;
const ROWS = [16, 32, 64, 128, 256, 512];
/** Of the product alone, at `TARGET_ROWS`. */
const TARGET = 2;
const TARGET_ROWS = 128;
const ROUNDS = 10;
/** Of one form before the next has its turn: whatever else the machine does falls on all of them. */
const TURN_MS = 15;
const WARM_UP_CALLS = 3_000;
const ROWS_OF = { request: ['user'], candidate: ['item'], requestIndex: 'request_index' };

interface Subject {
  name: string;
  model: Model;
  plan: LayerPlan;
  target?: number;
}

/** The first layer of a model alone: the request's columns, and those of its candidates, to which they come. */
function productAlone(): Subject {
  const model = layered(64, 32, [32, 1]);
  const plan = planOf(model);
  const [, first] = model.graph.nodes;
  const graph = {
    ...model.graph,
    nodes: model.graph.nodes.slice(0, 2),
    outputs: [{ name: first?.outputs[0] ?? '', type: 1, shape: ['N', 32] }],
  };
  const layers = plan.layers.slice(0, 2).map((layer) => ({ ...layer, activation: 'none' as const }));
  const alone = { ...plan, layers, heads: [] };
  return { name: '64 + 32 → 32, the product alone', model: { ...model, graph }, plan: alone, target: TARGET };
}

function planOf(model: Model): LayerPlan {
  const planned = planLayers(compiledOf(model), ROWS_OF);
  if (planned.kind === 'refused') throw new Error(planned.why);
  return planned.plan;
}

function compiledOf({ graph, groups }: Model): OnnxGraph {
  return compileGraph(graph, groups, { strict: false, attention: 'tiles' }).graph;
}

function subjects(): Subject[] {
  const whole = (request: number, candidate: number, widths: number[]): Subject => {
    const model = layered(request, candidate, widths);
    return { name: `${request} + ${candidate} → ${widths.join(' → ')}, whole`, model, plan: planOf(model) };
  };
  return [productAlone(), whole(64, 32, [32, 1]), whole(64, 32, [64, 32, 1])];
}

/**
 * Batches of many small requests, sixteen in a call: ONNX Runtime with the model as it was given (a row per candidate everywhere), with the request side
 * once per request, and the same layers in WebAssembly, by turns; the median of calls, µs.
 */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const rows: BenchRow[] = [];
  for (const subject of subjects()) {
    const [naive, shared] = await Promise.all([open(subject.model.graph), open(compiledOf(subject.model))]);
    for (const count of ROWS) rows.push(...(await rowsOf(subject, { naive, shared }, count)));
    await Promise.all([naive.release(), shared.release()]);
  }
  return { rows };
}

async function rowsOf(
  { name, model, plan, target }: Subject,
  { naive, shared }: { naive: InferenceSession; shared: InferenceSession },
  candidates: number,
): Promise<BenchRow[]> {
  const requestOf = Array.from({ length: candidates }, (_, n) => Math.floor((n * REQUESTS) / candidates));
  const random = seededRandom(1).stream(name);
  const batch = trialBatch(model.graph, model.groups, { requests: REQUESTS, requestOf, sequence: 1 }, random);
  const feeds = sharedFeeds(batch, ['', ROWS_OF.requestIndex]);
  const [given, split] = [tensors(naive, repeatedFeeds(batch, model.groups)), tensors(shared, feeds)];
  const layers = new IndexedLayers(plan);
  const call = slabOf(
    feeds,
    plan.heads.map((head) => head.name),
    candidates,
  );
  const [whole = 0, once = 0, wasm = 0] = await inTurn([
    () => naive.run(given),
    () => shared.run(split),
    () => layers.run(call.slab, call.feeds, call.outputs),
  ]);
  const { perRequest, perCandidate } = workOf(plan);
  const label = `${name}, ${candidates} rows of ${REQUESTS} requests`;
  const isTarget = target !== undefined && candidates === TARGET_ROWS;
  return [
    {
      metric: `${label}, multiplications`,
      value: (perRequest * REQUESTS + perCandidate * candidates) / 1_000,
      unit: 'thousand',
    },
    { metric: `${label}, onnx-cpu as given`, value: whole, unit: 'µs' },
    { metric: `${label}, onnx-cpu, request side once`, value: once, unit: 'µs' },
    { metric: `${label}, layers in WebAssembly`, value: wasm, unit: 'µs' },
    {
      metric: `${label}, how many times as fast as the faster of the two`,
      value: Math.min(whole, once) / wasm,
      unit: '×',
      ...(isTarget ? { target, relation: '>=' as const } : {}),
    },
  ];
}

function open(graph: OnnxGraph): Promise<InferenceSession> {
  const threads = { intraOpNumThreads: 1, interOpNumThreads: 1 };
  return InferenceSession.create(writeGraph(graph), {
    executionProviders: ['cpu'],
    logSeverityLevel: 4,
    ...threads,
  });
}

function tensors({ inputNames }: InferenceSession, feeds: TrialFeeds): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(feeds)
      .filter(([name]) => inputNames.includes(name))
      .map(([name, { type, data, dims }]) => [name, new Tensor(type, data, dims)]),
  );
}

/** Medians of single calls, µs: a call that another process interrupts is one of many. */
async function inTurn(calls: readonly (() => unknown)[]): Promise<number[]> {
  for (const call of calls) for (let n = 0; n < WARM_UP_CALLS; n += 1) await call();
  const times: number[][] = calls.map(() => []);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [n, call] of calls.entries()) {
      await call();
      const endMs = performance.now() + TURN_MS;
      let startedMs = performance.now();
      while (startedMs < endMs) {
        await call();
        times[n]?.push((performance.now() - startedMs) * 1_000);
        startedMs = performance.now();
      }
    }
  return times.map((each) => percentile(each, 0.5));
}
