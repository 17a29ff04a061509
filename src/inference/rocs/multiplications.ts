import { InferenceSession } from 'onnxruntime-node';
import { intOf } from '../onnx-file/attributes.ts';
import type { OnnxGraph, OnnxNode } from '../onnx-file/graph.ts';
import { writeGraph } from '../onnx-file/write-graph.ts';
import type { InputGroups } from './compile.ts';
import { elementTypes } from './element-types.ts';
import type { OneGraphForms } from './forms.ts';
import { trialBatch } from './trial-batch.ts';

/** Multiplications of matrix products for each candidate; sequences have 32 rows. */
export interface Multiplications {
  /** Of the model as it was given. */
  given: number;
  /** Of the compiled one, without what it computes once per request. */
  candidate: number;
}

const CANDIDATES = 64;
const SEQUENCE = 32;

/** Counts on one made-up request: sizes that only a call decides are then known. */
export async function countMultiplications(
  forms: OneGraphForms,
  graph: OnnxGraph,
  groups: InputGroups,
  random: { next(): number },
): Promise<Multiplications> {
  const requestOf = new Array<number>(CANDIDATES).fill(0);
  const batch = forms.prepare(
    trialBatch(graph, groups, { requests: 1, requestOf, sequence: SEQUENCE }, random),
  );
  const compiled = forms.compiled.graph;
  const ofCandidates = compiled.nodes.filter(({ level }) => level === groups.length - 1);
  const given = await multiplicationsIn(graph, graph.nodes, batch.given);
  const candidate = await multiplicationsIn(compiled, ofCandidates, batch.shared);
  return { given: given / CANDIDATES, candidate: candidate / CANDIDATES };
}

/** Of some nodes of a graph in one run: a product of n numbers that are each a sum of k terms takes n·k. */
async function multiplicationsIn(
  graph: OnnxGraph,
  nodes: readonly OnnxNode[],
  feeds: InferenceSession.OnnxValueMapType,
): Promise<number> {
  const products = nodes.filter(({ op }) => op === 'MatMul' || op === 'Gemm');
  const shapes = await shapesOf(graph, products.flatMap(firstsOf), feeds);
  return products.reduce((sum, node) => {
    const [left, product] = firstsOf(node).map((name) => shapes.get(name) ?? []);
    const terms = intOf(node, 'transA', 0) === 1 ? left?.[0] : left?.at(-1);
    return sum + (product ?? []).reduce((elements, size) => elements * size, terms ?? 0);
  }, 0);
}

/** Names of a product's left factor and of the product. */
function firstsOf({ inputs, outputs }: OnnxNode): [string, string] {
  return [inputs[0] ?? '', outputs[0] ?? ''];
}

/** Shapes of tensors within a graph, from a run that gives them all out. */
async function shapesOf(
  graph: OnnxGraph,
  names: readonly string[],
  feeds: InferenceSession.OnnxValueMapType,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const shapes = new Map<string, readonly number[]>();
  for (const [name, { dims }] of graph.constants) shapes.set(name, dims);
  for (const { name } of graph.inputs) shapes.set(name, feeds[name]?.dims ?? []);
  const types = elementTypes(graph);
  const wanted = [...new Set(names)].filter((name) => !shapes.has(name));
  if (wanted.length === 0) return shapes;
  const outputs = wanted.map((name) => ({ name, type: types.get(name) ?? 1, shape: undefined }));
  const session = await InferenceSession.create(writeGraph({ ...graph, outputs }), {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  });
  try {
    const taken = session.inputNames.flatMap((name) => {
      const feed = feeds[name];
      return feed === undefined ? [] : [[name, feed] as const];
    });
    const run = await session.run(Object.fromEntries(taken));
    for (const [name, { dims }] of Object.entries(run)) shapes.set(name, dims);
  } finally {
    await session.release();
  }
  return shapes;
}
