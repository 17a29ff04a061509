import { MillraceError } from '../../core/errors.ts';
import type { Dim, OnnxGraph, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import { INDEX_INPUTS, type LoweredNode, Lowering, tensorOf, Unshareable } from './lowering.ts';
import { refusal } from './refusal.ts';
import { isOfSizes, sizeRules } from './rules/sizes.ts';
import { type CompileOptions, inRows, levelOf, type Rule, type Step } from './rules/step.ts';
import { NEVER, RULES } from './rules/table.ts';
import { ROWS } from './size.ts';
import type { Level, Value } from './value.ts';

/** Since then axes are inputs of the operators that have them. */
const OPSET_MIN = 13;

/** The groups of a model's inputs, earliest first: the request's, (those between), the candidate's. */
export type InputGroups = readonly (readonly string[])[];

export interface Compiled {
  /** Its nodes with the level whose rows they compute. */
  readonly graph: Omit<OnnxGraph, 'nodes'> & { readonly nodes: readonly LoweredNode[] };
  readonly groups: InputGroups;
  /** By level ≥ 1: which input points at the rows of the level before. */
  readonly rowOf: readonly string[];
  /** Whether candidates are laid out in tiles; then the graph has their three inputs too. */
  readonly usesTiles: boolean;
}

/**
 * Compiles a model whose inputs all have a row per candidate into one whose request side has a row per request.
 *
 * @param graph its inputs [rows, …]
 * @param groups every input of it in one group
 * @throws MillraceError INVALID_MODEL that names the node which stands against it
 */
export function compileGraph(graph: OnnxGraph, groups: InputGroups, options: CompileOptions): Compiled {
  if (graph.opset < OPSET_MIN) {
    throw new MillraceError('INVALID_MODEL', 'the model is of an old opset', {
      value: graph.opset,
      allowed: `${OPSET_MIN} and later`,
      advice: 'Export it anew, or convert it (onnx.version_converter).',
    });
  }
  const candidateLevel = groups.length - 1;
  const rowOf = groups.map((_, level) => (level === 1 ? 'request_index' : `index_${level}`));
  const into = new Lowering(graph.constants, { rowOf, ...INDEX_INPUTS }, candidateLevel);
  const values = new Map<string, Value>();
  for (const [name, { type, dims }] of graph.constants)
    values.set(name, { kind: 'constant', name, type, shape: dims });
  for (const input of graph.inputs) readInput(input, levelIn(groups, input.name), into, values);
  for (const node of graph.nodes) lowerNode(node, into, options, values);
  for (const output of graph.outputs) writeOutput(output, into, options, values);
  return assemble(graph, groups, rowOf, into);
}

function levelIn(groups: InputGroups, name: string): Level {
  const level = groups.findIndex((names) => names.includes(name));
  if (level >= 0) return level;
  throw new MillraceError('INVALID_MODEL', `input ${name} is in no group`, {
    allowed: groups.flat().join(', '),
    advice: 'Name it among the inputs of the request or of the candidate.',
  });
}

function readInput(input: OnnxValue, level: Level, into: Lowering, values: Map<string, Value>): void {
  const [rows, ...rest] = input.shape ?? [];
  if (rows === undefined || rest.includes(rows)) {
    throw new MillraceError('INVALID_MODEL', `input ${input.name} has no axis of rows`, {
      value: input.shape,
    });
  }
  if (typeof rows === 'number') {
    throw new MillraceError('INVALID_MODEL', `input ${input.name} has a fixed number of rows`, {
      value: `[${input.shape?.join(', ')}]`,
      allowed: 'a first axis that each call decides: a row per candidate',
      advice: `Export it with a dynamic first axis${rows === 1 ? '; or make a version of the file as it is: millrace model init takes a request of one row' : ''}.`,
    });
  }
  const shape = [ROWS, ...rest.map(symbolOf)];
  into.input(level, { ...input, shape });
  values.set(input.name, tensorOf(level, input.name, input.type, shape));
}

/** A size's name as a symbol of sums of products: it must not look like one. */
function symbolOf(dim: Dim): Dim {
  if (typeof dim === 'number' || /^[A-Za-z_][^+*]*$/.test(dim)) return dim;
  return `_${dim.replaceAll(/[+*]/g, '_')}`;
}

function lowerNode(
  node: OnnxNode,
  into: Lowering,
  options: CompileOptions,
  values: Map<string, Value>,
): void {
  const inputs = node.inputs.map((name) => {
    if (name === '') return undefined;
    const value = values.get(name);
    if (value === undefined) throw refusal(node, `nothing before it makes ${name}`);
    return value;
  });
  const step: Step = { node, inputs, into, options };
  const sizes = isOfSizes(step) ? sizeRules[node.op] : undefined;
  const rule = sizes ?? RULES.get(node.op);
  if (rule === undefined) throw refusal(node, NEVER.get(node.op) ?? 'no rule says how it treats rows');
  const outputs = applied(step, rule);
  node.outputs.forEach((name, n) => {
    const value = outputs[n];
    if (value !== undefined) values.set(name, value);
  });
}

function applied(step: Step, rule: Rule): readonly Value[] {
  try {
    return rule(step);
  } catch (error) {
    throw error instanceof Unshareable ? refusal(step.node, error.message) : error;
  }
}

/** With a row per candidate, and the name that it had. */
function writeOutput(
  output: OnnxValue,
  into: Lowering,
  options: CompileOptions,
  values: Map<string, Value>,
): void {
  const value = values.get(output.name);
  const node = { op: 'output', name: output.name, inputs: [], outputs: [], attributes: [] };
  if (value?.kind !== 'tensor' || levelOf(value) < 0)
    throw refusal(node, 'it does not follow from the inputs');
  const rows = inRows({ node, inputs: [], into, options }, value);
  const { name } = into.at(rows, into.candidateLevel);
  into.nodes.push({
    op: 'Identity',
    name: `rocs.${output.name}`,
    inputs: [name],
    outputs: [output.name],
    attributes: [],
    level: into.candidateLevel,
  });
}

function assemble(graph: OnnxGraph, groups: InputGroups, rowOf: readonly string[], into: Lowering): Compiled {
  const nodes = neededNodes(
    into.nodes,
    graph.outputs.map(({ name }) => name),
  );
  const read = new Set(nodes.flatMap(({ inputs }) => inputs));
  const usesTiles = Object.values(INDEX_INPUTS).some((name) => read.has(name));
  const inputs = graph.inputs.map((input) => ({
    ...input,
    shape: [rowsName(levelIn(groups, input.name), groups), ...(input.shape ?? []).slice(1)],
  }));
  return {
    graph: {
      ...graph,
      inputs: [...inputs, ...indexInputs(groups, rowOf, read)],
      outputs: outputsOf(graph, groups),
      constants: into.constants,
      nodes,
    },
    groups,
    rowOf,
    usesTiles,
  };
}

const INT64 = 7;

function indexInputs(groups: InputGroups, rowOf: readonly string[], read: ReadonlySet<string>): OnnxValue[] {
  const rows = rowOf.flatMap((name, level) =>
    level === 0 ? [] : [{ name, type: INT64, shape: [rowsName(level, groups)] }],
  );
  const tiles: OnnxValue[] = [
    { name: INDEX_INPUTS.tileCandidates, type: INT64, shape: ['tiles', 'slots'] },
    { name: INDEX_INPUTS.tileRow, type: INT64, shape: ['tiles'] },
    { name: INDEX_INPUTS.candidateSlot, type: INT64, shape: [rowsName(groups.length - 1, groups)] },
  ];
  return [...rows, ...tiles].filter(({ name }) => read.has(name));
}

function outputsOf({ outputs }: OnnxGraph, groups: InputGroups): OnnxValue[] {
  return outputs.map((output) => ({
    ...output,
    shape: [rowsName(groups.length - 1, groups), ...(output.shape ?? []).slice(1)],
  }));
}

function rowsName(level: Level, groups: InputGroups): string {
  if (level === groups.length - 1) return 'candidates';
  return level === 0 ? 'requests' : `rows_${level}`;
}

/** What the outputs follow from, in order; behind a node that is not `among` those asked for it looks no further. */
export function neededNodes(
  nodes: readonly LoweredNode[],
  outputs: readonly string[],
  among: (node: LoweredNode) => boolean = () => true,
): LoweredNode[] {
  const needed = new Set(outputs);
  const kept: LoweredNode[] = [];
  for (const node of [...nodes].reverse()) {
    if (!among(node) || !node.outputs.some((name) => needed.has(name))) continue;
    kept.push(node);
    for (const input of node.inputs) needed.add(input);
  }
  return kept.reverse();
}
