import { floatOf, intOf } from '../onnx-file/attributes.ts';
import type { OnnxGraph, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import { addendOf, biasOf, matrixOf, type ProductWeights } from '../onnx-file/product-weights.ts';
import { INNER_MAX } from './kernel-layout.ts';

/** A product that was cut out of a graph. */
export interface CutProduct extends ProductWeights {
  /** The input of the graph whose rows it multiplies. */
  input: string;
  /** The input of the rest that takes what it gives. */
  output: string;
}

export type Cut =
  | { kind: 'cut'; rest: OnnxGraph; products: readonly CutProduct[] }
  /** `why` names the nodes that stand against it. */
  | { kind: 'refused'; why: string };

/** Of a row of the result: its kernel has code for each tile of columns. */
const COLUMNS_MAX = 4_096;
const WEIGHTS_MAX = 64 * 1024 * 1024;

/**
 * Cuts a graph behind the products of its inputs with constants, MatMul or Gemm: what they give becomes an input of the rest. An input that
 * something else reads, too, stays one.
 * @param inputs those that may be sparse; of the others nothing is cut
 */
export function cutProducts(graph: OnnxGraph, inputs: readonly string[]): Cut {
  const sparse = graph.inputs.filter(
    ({ name, type }) => type === TensorProto_DataType.FLOAT && inputs.includes(name),
  );
  const products: CutProduct[] = [];
  const refusals: string[] = [];
  const nodes = graph.nodes.flatMap((node): OnnxNode[] => {
    const input = firstOf(node, sparse);
    if (input === undefined) return [node];
    const product = productOf(node, input, graph.constants);
    if (typeof product === 'string') {
      refusals.push(`node ${node.name}, ${node.op}(${node.inputs.join(', ')}): ${product}`);
      return [node];
    }
    products.push(product);
    return [restOf(node, product, addendOf(node, graph.constants, product.columns))];
  });
  if (products.length === 0) return { kind: 'refused', why: refusalOf(refusals) };
  return { kind: 'cut', rest: restGraph(graph, nodes, products), products };
}

/** Which of the inputs a node reads: the one that it multiplies, if it is a product. */
function firstOf({ inputs }: OnnxNode, among: readonly OnnxValue[]): OnnxValue | undefined {
  for (const read of inputs) {
    const input = among.find(({ name }) => name === read);
    if (input !== undefined) return input;
  }
  return undefined;
}

function refusalOf(refusals: readonly string[]): string {
  if (refusals.length === 0) return 'it has no candidate input of FP32 that a node reads';
  return `no product with weights of its own takes a candidate input: ${refusals.join('; ')}`;
}

function restGraph(graph: OnnxGraph, nodes: readonly OnnxNode[], products: readonly CutProduct[]): OnnxGraph {
  const cut = products.map(({ input }) => input);
  const read = new Set([...nodes.flatMap((node) => node.inputs), ...graph.outputs.map(({ name }) => name)]);
  const kept = graph.inputs.filter(({ name }) => read.has(name) || !cut.includes(name));
  const given = products.map(({ input, output, columns }): OnnxValue => {
    const shape = graph.inputs.find(({ name }) => name === input)?.shape;
    return {
      name: output,
      type: TensorProto_DataType.FLOAT,
      shape: shape === undefined ? undefined : [...shape.slice(0, -1), columns],
    };
  });
  return { ...graph, name: `${graph.name}, behind its first layer`, inputs: [...kept, ...given], nodes };
}

/** In the node's place: adds what each row has of its own, or only gives the result the name that others know. */
function restOf(node: OnnxNode, { output }: CutProduct, more: string | undefined): OnnxNode {
  const op = more === undefined ? 'Identity' : 'Add';
  return { ...node, op, inputs: more === undefined ? [output] : [output, more], attributes: [] };
}

/** @returns why it is none, where it is none */
function productOf(
  node: OnnxNode,
  { name: input, shape }: OnnxValue,
  constants: OnnxGraph['constants'],
): CutProduct | string {
  if (node.op !== 'MatMul' && node.op !== 'Gemm') return 'no product of a matrix';
  const [first, second = ''] = node.inputs;
  const constant = constants.get(second);
  const weights = constant === undefined ? undefined : matrixOf(node, constant);
  if (first !== input || weights === undefined) return `${second} is no matrix of FP32 that the file holds`;
  if (intOf(node, 'transA', 0) !== 0) return 'it turns its input';
  if (shape?.at(-1) !== weights.inner) return `the rows of ${input} are not of ${weights.inner} values`;
  const { inner, columns } = weights;
  if (inner > INNER_MAX || columns > COLUMNS_MAX || inner * columns > WEIGHTS_MAX)
    return `its weights are [${inner}, ${columns}], of at most [${INNER_MAX}, ${COLUMNS_MAX}] and ${WEIGHTS_MAX} values`;
  const added = addendOf(node, constants, weights.columns);
  if (added !== undefined && floatOf(node, 'beta', 1) !== 1) return `it scales ${added} by beta`;
  const output = `${node.outputs[0] ?? ''}, of non-zeros`;
  return { input, output, ...weights, bias: biasOf(node, constants, weights.columns) };
}
