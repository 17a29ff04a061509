import { floatOf, intOf } from '../onnx-file/attributes.ts';
import { floatsOf, integersOf } from '../onnx-file/constant.ts';
import type { OnnxGraph, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import { addendOf, biasOf, matrixOf, sameInEveryRow } from '../onnx-file/product-weights.ts';
import type { Layer, LayerHead, LayerPlan, Rows, RowValue, ScalarStep } from './layer-plan.ts';

/** The inputs of a graph by the rows that they have. */
export interface InputRows {
  request: readonly string[];
  candidate: readonly string[];
  requestIndex: string;
}

export type Planned = { kind: 'planned'; plan: LayerPlan } | { kind: 'refused'; why: string };

/** What a name of the graph stands for. */
type Value =
  | { kind: 'rows'; value: RowValue; layer: Layer | undefined }
  /** A request's row at each of its candidates. */
  | { kind: 'gathered'; of: RowValue }
  /** `column`: the one that was taken; all of them where undefined. */
  | { kind: 'scores'; of: RowValue; column: number | undefined; steps: readonly ScalarStep[] };

/** So many columns are cheap to change number by number; hidden layers have more. */
const SCORE_COLUMNS_MAX = 8;

/**
 * Takes a graph for layers: products of rows with weights that the file holds, to which candidates' rows get what their request has, ReLU, and at the
 * end scores of a few columns. Any node that is something else refuses the whole graph, with its name.
 */
export function planLayers(graph: OnnxGraph, inputRows: InputRows): Planned {
  const planner = new Planner(graph, inputRows);
  for (const input of graph.inputs) {
    const why = planner.read(input);
    if (why !== undefined) return { kind: 'refused', why };
  }
  for (const node of graph.nodes) {
    const why = planner.take(node);
    if (why !== undefined) return { kind: 'refused', why: `node ${node.name}, ${node.op}: ${why}` };
  }
  return planner.end();
}

class Planner {
  readonly #graph: OnnxGraph;
  readonly #inputRows: InputRows;
  readonly #values = new Map<string, Value>();
  readonly #inputs: RowValue[] = [];
  readonly #layers: Layer[] = [];
  /** How many read each name: what one node changes in place nobody else may read. */
  readonly #readers = new Map<string, number>();

  constructor(graph: OnnxGraph, inputRows: InputRows) {
    this.#graph = graph;
    this.#inputRows = inputRows;
    const read = [...graph.nodes.flatMap(({ inputs }) => inputs), ...graph.outputs.map(({ name }) => name)];
    for (const name of read) this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1);
  }

  /** @returns why an input stands against it */
  read({ name, type, shape }: OnnxValue): string | undefined {
    const { request, candidate, requestIndex } = this.#inputRows;
    if (name === requestIndex) return undefined;
    const width = shape?.[1];
    const isMatrix = type === TensorProto_DataType.FLOAT && shape?.length === 2;
    const isKnown = request.includes(name) || candidate.includes(name);
    if (!isMatrix || !isKnown || typeof width !== 'number') return `input ${name} is no matrix of FP32`;
    const value: RowValue = { name, rows: request.includes(name) ? 'request' : 'candidate', width };
    this.#inputs.push(value);
    this.#values.set(name, { kind: 'rows', value, layer: undefined });
    return undefined;
  }

  /** @returns why a node stands against it */
  take(node: OnnxNode): string | undefined {
    const made = this.#make(node);
    if (typeof made === 'string') return made;
    this.#values.set(node.outputs[0] ?? '', made);
    return undefined;
  }

  end(): Planned {
    if (!this.#inputs.some(({ rows }) => rows === 'request'))
      return { kind: 'refused', why: 'no input has a row per request' };
    const heads: LayerHead[] = [];
    for (const { name } of this.#graph.outputs) {
      const scores = this.#scoresOf(name);
      if (typeof scores === 'string' || scores.column === undefined)
        return { kind: 'refused', why: `output ${name} is no column of scores` };
      heads.push({ name, of: scores.of, column: scores.column, steps: scores.steps });
    }
    const plan = {
      inputs: this.#inputs,
      requestIndex: this.#inputRows.requestIndex,
      layers: this.#layers,
      heads,
    };
    return { kind: 'planned', plan };
  }

  #make(node: OnnxNode): Value | string {
    const [first = '', second = ''] = node.inputs;
    switch (node.op) {
      case 'MatMul':
      case 'Gemm':
        return this.#product(node);
      case 'Add':
        return this.#sum(first, second);
      case 'Relu':
        return this.#changed(first, (layer) => {
          layer.activation = 'relu';
        });
      case 'Gather':
        return second === this.#inputRows.requestIndex ? this.#gathered(node) : this.#column(node);
      case 'Squeeze':
        return this.#onlyColumn(node);
      case 'Identity':
        return this.#scoresOf(first);
      case 'Sigmoid':
        return this.#stepped(first, { kind: 'sigmoid' });
      case 'Neg':
        return this.#stepped(first, { kind: 'negate' });
      case 'Exp':
        return this.#stepped(first, { kind: 'exponent' });
      case 'Reciprocal':
        return this.#stepped(first, { kind: 'reciprocal' });
      default:
        return 'no layer of weights, and no score of one';
    }
  }

  #product(node: OnnxNode): Value | string {
    const [first = '', second = ''] = node.inputs;
    const { constants } = this.#graph;
    const x = this.#values.get(first);
    const constant = constants.get(second);
    const matrix = constant === undefined ? undefined : matrixOf(node, constant);
    if (x?.kind !== 'rows') return `${first} is no row`;
    if (matrix === undefined || matrix.inner !== x.value.width)
      return `${second} is no matrix of FP32 for rows of ${x.value.width} values`;
    if (intOf(node, 'transA', 0) !== 0) return 'it turns its rows';
    const added = this.#addedTo(node, x.value.rows, matrix.columns);
    if (typeof added === 'string') return added;
    const result = { name: node.outputs[0] ?? '', rows: x.value.rows, width: matrix.columns };
    const bias = node.op === 'Gemm' ? biasOf(node, constants, matrix.columns) : undefined;
    const layer: Layer = { result, input: x.value, ...matrix, bias, added: added.of, activation: 'none' };
    this.#layers.push(layer);
    return { kind: 'rows', value: result, layer };
  }

  /** What a Gemm adds that is not alike for all rows. */
  #addedTo(node: OnnxNode, rows: Rows, columns: number): { of: RowValue | undefined } | string {
    const name = addendOf(node, this.#graph.constants, columns);
    if (name === undefined) return { of: undefined };
    const added = this.#values.get(name);
    const fits = added?.kind === 'gathered' && added.of.width === columns && rows === 'candidate';
    if (!fits) return `${name} is not what a request has for its candidates`;
    return floatOf(node, 'beta', 1) === 1 ? { of: added.of } : `it scales ${name} by beta`;
  }

  #sum(one: string, other: string): Value | string {
    const number = this.#numberOf(other);
    if (this.#values.get(one)?.kind === 'scores' && number !== undefined)
      return this.#stepped(one, { kind: 'add', value: number });
    const [to, what] = this.#values.get(one)?.kind === 'rows' ? [one, other] : [other, one];
    return this.#changed(to, (layer) => this.#addTo(layer, what));
  }

  #addTo(layer: Layer, what: string): string | undefined {
    const more = sameInEveryRow(this.#graph.constants.get(what), layer.columns);
    const value = this.#values.get(what);
    if (more !== undefined) {
      layer.bias = layer.bias === undefined ? more : more.map((each, n) => each + (layer.bias?.[n] ?? 0));
      return undefined;
    }
    const fits = value?.kind === 'gathered' && value.of.width === layer.columns;
    if (!fits || layer.result.rows === 'request' || layer.added !== undefined)
      return `${what} is not what a request has for its candidates`;
    layer.added = value.of;
    return undefined;
  }

  /** The same layer, with more in it. */
  #changed(name: string, change: (layer: Layer) => string | undefined): Value | string {
    const value = this.#values.get(name);
    if (value?.kind !== 'rows' || value.layer === undefined) return `${name} is no layer's result`;
    if (this.#readers.get(name) !== 1) return `others read ${name}, too`;
    if (value.layer.activation !== 'none') return `${name} comes out of an activation`;
    return change(value.layer) ?? value;
  }

  #gathered(node: OnnxNode): Value | string {
    const [first = ''] = node.inputs;
    const value = this.#values.get(first);
    const isRequests = value?.kind === 'rows' && value.value.rows === 'request';
    if (!isRequests || value.layer === undefined || intOf(node, 'axis', 0) !== 0)
      return `${first} is no layer's result for requests`;
    return { kind: 'gathered', of: value.value };
  }

  #column(node: OnnxNode): Value | string {
    const [first = '', second = ''] = node.inputs;
    const scores = this.#scoresOf(first);
    const index = this.#graph.constants.get(second);
    const [column] = index?.dims.length === 0 ? (integersOf(index) ?? []) : [];
    if (typeof scores === 'string') return scores;
    if (column === undefined || ![1, -1].includes(intOf(node, 'axis', 0)) || scores.column !== undefined)
      return 'it takes something else than one column';
    return { ...scores, column: column < 0 ? column + scores.of.width : column };
  }

  #onlyColumn({ inputs: [first = '', second = ''] }: OnnxNode): Value | string {
    const scores = this.#scoresOf(first);
    const axes = this.#graph.constants.get(second);
    const [axis = 0] = axes === undefined ? [] : (integersOf(axes) ?? []);
    if (typeof scores === 'string') return scores;
    if (scores.column !== undefined || scores.of.width !== 1 || ![1, -1].includes(axis))
      return 'it takes something else than one column';
    return { ...scores, column: 0 };
  }

  #stepped(name: string, step: ScalarStep): Value | string {
    const scores = this.#scoresOf(name);
    return typeof scores === 'string' ? scores : { ...scores, steps: [...scores.steps, step] };
  }

  /** A layer's result, once it is taken for scores. */
  #scoresOf(name: string): Extract<Value, { kind: 'scores' }> | string {
    const value = this.#values.get(name);
    if (value?.kind === 'scores') return value;
    const isOfCandidates = value?.kind === 'rows' && value.value.rows === 'candidate';
    if (!isOfCandidates || value.layer === undefined || value.value.width > SCORE_COLUMNS_MAX)
      return `${name} is no score: at most ${SCORE_COLUMNS_MAX} columns of a layer for candidates`;
    return { kind: 'scores', of: value.value, column: undefined, steps: [] };
  }

  #numberOf(name: string): number | undefined {
    const constant = this.#graph.constants.get(name);
    const values = constant === undefined ? undefined : floatsOf(constant);
    return values?.length === 1 ? values[0] : undefined;
  }
}
