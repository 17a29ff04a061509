import type { Dim, OnnxGraph, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import { intAttribute } from '../onnx-file/write-graph.ts';
import { openOneGraph } from '../rocs/forms.ts';
import { INDEX_INPUTS } from '../rocs/lowering.ts';
import { countMultiplications, type Multiplications } from '../rocs/multiplications.ts';
import { verifyOneGraph } from '../rocs/verify.ts';
import { REQUEST_INDEX } from './made-inputs.ts';
import { type InputPlan, namesOf } from './planned-input.ts';

/** How the version's graph came about: it was so already, it was compiled, the request's rows are copied for each candidate, or the request has none. */
export type Sharing = 'given' | 'compiled' | 'copies' | 'nothing';

export interface SharedGraph {
  readonly graph: OnnxGraph;
  readonly sharing: Sharing;
  readonly usesTiles: boolean;
  /** Per candidate; where it was compiled. */
  readonly multiplications?: Multiplications;
}

export interface SharingOptions {
  /** Compile layers without a mask too. */
  readonly unmasked: boolean;
  /** False: copy, where the compiler refuses. */
  readonly share: boolean;
  readonly random: { next(): number };
}

/**
 * The graph as workers call it: a row per request, a row per candidate, and `request_index`.
 * @throws MillraceError INVALID_MODEL that names the node which cannot be carried over
 */
export async function sharedGraph(
  graph: OnnxGraph,
  plan: InputPlan,
  options: SharingOptions,
): Promise<SharedGraph> {
  if (plan.isShared) return { graph, sharing: 'given', usesTiles: plan.usesTiles };
  const raised = withRows(graph, plan);
  const hasRequest = namesOf(plan.inputs, 'request').length > 0;
  if (!options.share || !hasRequest) {
    const sharing = hasRequest ? 'copies' : 'nothing';
    return { graph: withIndex(copied(raised, plan)), sharing, usesTiles: false };
  }
  const groups = [namesOf(plan.inputs, 'request'), namesOf(plan.inputs, 'candidate')];
  const forms = await openOneGraph(raised, groups, { strict: !options.unmasked });
  try {
    await verifyOneGraph(forms, raised, groups, options.random);
    const multiplications = await countMultiplications(forms, raised, groups, options.random);
    const { compiled } = forms;
    return {
      graph: withIndex(compiled.graph),
      sharing: 'compiled',
      usesTiles: compiled.usesTiles,
      multiplications,
    };
  } finally {
    await forms.close();
  }
}

/** Every input with an axis for rows, where a request's had none or one of size 1: the compiler wants a row per candidate everywhere. */
function withRows(graph: OnnxGraph, { inputs }: InputPlan): OnnxGraph {
  const without = new Set(inputs.filter(({ rows }) => rows === 'none').map(({ name }) => name));
  return {
    ...graph,
    inputs: graph.inputs.map((input) => {
      const planned = inputs.find(({ name }) => name === input.name);
      return planned === undefined ? input : { ...input, shape: ['rows', ...planned.rowShape] };
    }),
    nodes: graph.nodes.map((node) => (addsRows(graph, node, without) ? asIdentity(node) : node)),
  };
}

/** A model that takes `[64]` mostly makes `[1, 64]` of it before all else. */
function addsRows({ constants }: OnnxGraph, { op, inputs }: OnnxNode, without: ReadonlySet<string>): boolean {
  const [data = '', axes = ''] = inputs;
  const bytes = constants.get(axes)?.bytes;
  return op === 'Unsqueeze' && without.has(data) && bytes?.length === 8 && bytes.every((byte) => byte === 0);
}

function asIdentity(node: OnnxNode): OnnxNode {
  return { ...node, op: 'Identity', inputs: node.inputs.slice(0, 1), attributes: [] };
}

/** The model as it was given, behind a copy of the request's rows for each candidate: nothing is shared. */
function copied(graph: OnnxGraph, plan: InputPlan): OnnxGraph {
  const copies = new Map(
    namesOf(plan.inputs, 'request').map((name) => [name, freshName(graph, `${name}.rows`)]),
  );
  const axis = (name: string): Dim => (copies.has(name) ? 'requests' : 'candidates');
  const gathers = [...copies].map(
    ([name, copy]): OnnxNode => ({
      op: 'Gather',
      name: copy,
      inputs: [name, REQUEST_INDEX],
      outputs: [copy],
      attributes: [intAttribute('axis', 0)],
    }),
  );
  const readsCopies = (node: OnnxNode): OnnxNode => ({
    ...node,
    inputs: node.inputs.map((input) => copies.get(input) ?? input),
  });
  return {
    ...graph,
    inputs: graph.inputs.map((input) => ({
      ...input,
      shape: [axis(input.name), ...(input.shape?.slice(1) ?? [])],
    })),
    nodes: [...gathers, ...graph.nodes.map(readsCopies)],
  };
}

/** Batches always come with it, whether the graph looks at it or not. */
function withIndex(graph: OnnxGraph): OnnxGraph {
  if (graph.inputs.some(({ name }) => name === REQUEST_INDEX)) return graph;
  const index: OnnxValue = { name: REQUEST_INDEX, type: TensorProto_DataType.INT64, shape: ['candidates'] };
  return { ...graph, inputs: [...graph.inputs, index] };
}

/** A name that no value and no node of the graph has. */
export function freshName({ inputs, constants, nodes }: OnnxGraph, wanted: string): string {
  const taken = new Set([
    ...inputs.map(({ name }) => name),
    ...constants.keys(),
    ...nodes.flatMap(({ name, outputs }) => [name, ...outputs]),
    REQUEST_INDEX,
    ...Object.values(INDEX_INPUTS),
  ]);
  let name = wanted;
  while (taken.has(name)) name = `${name}_`;
  return name;
}
