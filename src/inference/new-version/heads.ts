import { MillraceError } from '../../core/errors.ts';
import { int64 } from '../onnx-file/constant.ts';
import type { OnnxGraph, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import { intAttribute } from '../onnx-file/write-graph.ts';
import type { GraphOutput } from './graph-session.ts';
import { freshName } from './shared-graph.ts';

/** A head of the version, and where the file has it. */
export interface PlannedHead {
  readonly name: string;
  readonly output: string;
  /** Of an output with several numbers per candidate; `undefined` where it has the axis of candidates alone. */
  readonly column: number | undefined;
}

/** More columns are no scores but a vector, unless somebody names them. */
const COLUMNS_MAX = 8;

/**
 * The heads that the outputs make, one per number and candidate.
 *
 * @param observed what the file gave for that many `candidates`
 * @param names of the heads, in the order of outputs and columns; those of the outputs where `undefined`
 * @throws MillraceError INVALID_MODEL for an output that has no row per candidate, INVALID_CONFIG for names that do not fit
 */
export function planHeads(
  outputs: readonly OnnxValue[],
  observed: ReadonlyMap<string, GraphOutput>,
  candidates: number,
  names: readonly string[] | undefined,
): PlannedHead[] {
  const columns = outputs.flatMap(({ name }) => columnsOf(name, observed.get(name)?.dims ?? [], candidates));
  if (names === undefined) checkWidth(columns);
  else checkCount(names, columns);
  const heads = columns.map((column, n) => ({ ...column, name: names?.[n] ?? defaultName(column, columns) }));
  const twice = heads.find(({ name }, n) => heads.findIndex((head) => head.name === name) !== n);
  if (twice !== undefined)
    throw new MillraceError('INVALID_CONFIG', 'two heads have the same name', {
      value: twice.name,
      advice: 'Name each: --heads',
    });
  return heads;
}

type Column = Pick<PlannedHead, 'output' | 'column'>;

function columnsOf(output: string, dims: readonly number[], candidates: number): Column[] {
  const [rows, width] = dims;
  if (rows === candidates && dims.length === 1) return [{ output, column: undefined }];
  if (rows === candidates && dims.length === 2 && width !== undefined && width > 0)
    return Array.from({ length: width }, (_, column) => ({ output, column }));
  throw new MillraceError('INVALID_MODEL', `output ${output} is no score of each candidate`, {
    value: `[${dims.join(', ')}] for ${candidates} candidates`,
    allowed: '[candidates] or [candidates, heads]',
    advice: 'Name the outputs that are: --outputs. If none is, one side of the inputs is mistaken.',
  });
}

function checkWidth(columns: readonly Column[]): void {
  const wide = columns.find(({ column = 0 }) => column >= COLUMNS_MAX);
  if (wide === undefined) return;
  const width = columns.filter(({ output }) => output === wide.output).length;
  throw new MillraceError('INVALID_MODEL', `output ${wide.output} has a vector for each candidate`, {
    value: `${width} numbers`,
    allowed: `up to ${COLUMNS_MAX}, or as many names in --heads`,
    advice: 'Name the outputs that are scores: --outputs',
  });
}

function checkCount(names: readonly string[], columns: readonly Column[]): void {
  if (names.length === columns.length) return;
  throw new MillraceError('INVALID_CONFIG', 'there is not one name for each head', {
    value: names.join(', '),
    allowed: `${columns.length}: ${columns.map(({ output, column }) => (column === undefined ? output : `${output}[${column}]`)).join(', ')}`,
  });
}

/** The output's, with what expressions do not take replaced. */
function defaultName({ output, column }: Column, columns: readonly Column[]): string {
  const isAlone = columns.filter((other) => other.output === output).length === 1;
  const name = output.replaceAll(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_');
  return column === undefined || isAlone ? name : `${name}_${column}`;
}

/** The graph with each head as an output [candidates] of its name. */
export function withHeads(given: OnnxGraph, heads: readonly PlannedHead[]): OnnxGraph {
  const names = heads.flatMap(({ name, output }) => [name, output]);
  const moved = new Map(names.map((name) => [name, freshName(given, `${name}.given`)]));
  const graph = renamed(given, moved);
  const constants = new Map(graph.constants);
  const nodes = heads.map(({ name, output, column }): OnnxNode => {
    const from = moved.get(output) ?? output;
    if (given.inputs.some((input) => input.name === name))
      throw new MillraceError('INVALID_CONFIG', 'a head has the name of an input', {
        value: name,
        advice: 'Name the heads otherwise: --heads',
      });
    const own = { name: freshName(graph, `head.${name}`), outputs: [name] };
    if (column === undefined) return { ...own, op: 'Identity', inputs: [from], attributes: [] };
    const index = freshName(graph, `head.${name}.column`);
    constants.set(index, int64([], [column]));
    return { ...own, op: 'Gather', inputs: [from, index], attributes: [intAttribute('axis', 1)] };
  });
  return {
    ...graph,
    constants,
    nodes: [...graph.nodes, ...nodes],
    outputs: heads.map(({ name }) => ({ name, type: TensorProto_DataType.FLOAT, shape: ['candidates'] })),
  };
}

/** Values that are named as an output or a head will be get other names. */
function renamed(graph: OnnxGraph, moved: ReadonlyMap<string, string>): OnnxGraph {
  const rename = (name: string): string => moved.get(name) ?? name;
  return {
    ...graph,
    constants: new Map([...graph.constants].map(([name, constant]) => [rename(name), constant])),
    nodes: graph.nodes.map((node) => ({
      ...node,
      inputs: node.inputs.map(rename),
      outputs: node.outputs.map(rename),
    })),
  };
}
