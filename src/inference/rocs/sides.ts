import { MillraceError } from '../../core/errors.ts';
import type { Dim, OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import { type Compiled, neededNodes } from './compile.ts';
import { elementTypes } from './element-types.ts';
import type { LoweredNode } from './lowering.ts';
import { CONSTANT_LEVEL } from './value.ts';

/** A compiled model as two graphs. What the first gives is the request artefact: it can be kept, and sent to other workers. */
export interface Sides {
  /** Inputs of the earlier groups → the artefact, a row per request. */
  readonly request: OnnxGraph;
  /** The artefact, the candidate's inputs and their indices → the model's outputs. */
  readonly candidate: OnnxGraph;
  /** Names of its tensors, in both graphs. */
  readonly artefact: readonly string[];
}

/** Cuts a compiled graph where candidates begin. Both have the very nodes of the whole one. */
export function cutSides({ graph, groups }: Compiled): Sides {
  const candidateLevel = groups.length - 1;
  const outputs = graph.outputs.map(({ name }) => name);
  const candidateNodes = neededNodes(
    graph.nodes,
    outputs,
    ({ level }) => level === candidateLevel || level === CONSTANT_LEVEL,
  );
  const types = elementTypes(graph);
  const known = new Set([...graph.constants.keys(), ...candidateNodes.flatMap((node) => node.outputs)]);
  const isCandidateInput = ({ name }: OnnxValue) => !groups.slice(0, -1).flat().includes(name);
  for (const input of graph.inputs.filter(isCandidateInput)) known.add(input.name);
  const cut = [...new Set(candidateNodes.flatMap(({ inputs }) => inputs))].filter(
    (name) => name !== '' && !known.has(name),
  );
  refuseRawInputs(cut, candidateNodes);
  const requestNodes = neededNodes(graph.nodes, cut);
  const artefact = cut.map((name): OnnxValue => ({ name, type: types.get(name) ?? 1, shape: undefined }));
  const read = new Set([...requestNodes, ...candidateNodes].flatMap(({ inputs }) => inputs));
  return {
    request: {
      ...graph,
      name: `${graph.name}, request side`,
      inputs: graph.inputs.filter((input) => !isCandidateInput(input) && read.has(input.name)),
      outputs: artefact,
      nodes: requestNodes,
    },
    candidate: {
      ...graph,
      name: `${graph.name}, candidate side`,
      inputs: [...artefact, ...graph.inputs.filter(isCandidateInput)],
      nodes: candidateNodes,
    },
    artefact: cut,
  };
}

/**
 * With the artefact's shapes in both graphs. Without them onnxruntime fuses other nodes in the candidate's graph than in the whole one (a product and
 * what is added to it to a Gemm, where it sees that the rows fit), and sums of many terms are rounded in another place: other bits.
 */
export function withArtefactShapes(sides: Sides, shapes: ReadonlyMap<string, readonly Dim[]>): Sides {
  const shaped = (value: OnnxValue): OnnxValue =>
    sides.artefact.includes(value.name) ? { ...value, shape: shapes.get(value.name) } : value;
  return {
    ...sides,
    request: { ...sides.request, outputs: sides.request.outputs.map(shaped) },
    candidate: { ...sides.candidate, inputs: sides.candidate.inputs.map(shaped) },
  };
}

/** A size of a request's input that candidates need is no row of an artefact. */
function refuseRawInputs(cut: readonly string[], nodes: readonly LoweredNode[]): void {
  const sized = nodes.find(
    ({ op, level, inputs }) => op === 'Shape' && level === CONSTANT_LEVEL && cut.includes(inputs[0] ?? ''),
  );
  if (sized === undefined) return;
  throw new MillraceError(
    'INVALID_MODEL',
    `candidates need a size of ${sized.inputs[0]}, which no artefact holds`,
  );
}
