import { fromBinary } from '@bufbuild/protobuf';
import { MillraceError } from '../../core/errors.ts';
import { float32, int64, readConstant } from './constant.ts';
import type { Dim, OnnxConstant, OnnxGraph, OnnxNode, OnnxValue } from './graph.ts';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  type ValueInfoProto,
} from './onnx-proto.ts';

const OWN_DOMAINS: ReadonlySet<string> = new Set(['', 'ai.onnx']);

/**
 * An ONNX file as a graph whose `Constant` nodes are constants.
 * @throws MillraceError INVALID_MODEL where the bytes are no model, or hold what is not read here: local functions, subgraphs, operators of other
 * domains, sparse tensors or tensors in other files
 */
export function readGraph(bytes: Uint8Array): OnnxGraph {
  const model = parse(bytes);
  const { graph } = model;
  if (graph === undefined) throw invalid('the file holds no graph');
  if (model.functions.length > 0) throw invalid('it has functions of its own', model.functions[0]?.name);
  if (graph.sparseInitializer.length > 0) throw invalid('it has sparse tensors');
  const constants = new Map<string, OnnxConstant>();
  for (const tensor of graph.initializer) constants.set(tensor.name, readConstant(tensor));
  const nodes: OnnxNode[] = [];
  for (const proto of graph.node) {
    const node = readNode(proto);
    const constant = constantOf(node);
    if (constant === undefined) nodes.push(node);
    else constants.set(node.outputs[0] ?? '', constant);
  }
  const inputs = graph.input.filter(({ name }) => !constants.has(name)).map(readValue);
  checkMadeOnce([...inputs.map(({ name }) => name), ...nodes.flatMap(({ outputs }) => outputs)]);
  return {
    name: graph.name,
    irVersion: model.irVersion,
    opset: opsetOf(model),
    inputs,
    outputs: readOutputs(graph),
    constants,
    nodes,
  };
}

/** Names whose bytes are not UTF-8 differ in the file, and not as text. */
function checkMadeOnce(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (name !== '' && seen.has(name)) throw invalid('two of its values have the same name', name);
    seen.add(name);
  }
}

function parse(bytes: Uint8Array): ModelProto {
  try {
    return fromBinary(ModelProtoSchema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new MillraceError('INVALID_MODEL', 'the file is not an ONNX model', { cause });
  }
}

function opsetOf({ opsetImport }: ModelProto): number {
  const own = opsetImport.find(({ domain }) => OWN_DOMAINS.has(domain));
  if (own === undefined) throw invalid('it names no opset of the default domain');
  return Number(own.version);
}

function readOutputs(graph: GraphProto): OnnxValue[] {
  if (graph.output.length === 0) throw invalid('the graph has no output');
  return graph.output.map(readValue);
}

function readNode(proto: NodeProto): OnnxNode {
  const name = proto.name === '' ? `${proto.opType} → ${proto.output[0] ?? ''}` : proto.name;
  if (!OWN_DOMAINS.has(proto.domain)) {
    throw invalid(`node ${name} is of another domain`, `${proto.domain}:${proto.opType}`);
  }
  const subgraph = proto.attribute.find(({ g, graphs }) => g !== undefined || graphs.length > 0);
  if (subgraph !== undefined) {
    throw new MillraceError('INVALID_MODEL', `node ${name} holds a graph`, {
      value: `${proto.opType}.${subgraph.name}`,
      advice: 'Export without control flow (PyTorch: torch.onnx.export with dynamo=True).',
    });
  }
  return {
    op: proto.opType,
    name,
    inputs: proto.input,
    outputs: proto.output,
    attributes: proto.attribute,
  };
}

/** What a `Constant` node holds; `undefined` for any other node. */
function constantOf({ op, name, attributes }: OnnxNode): OnnxConstant | undefined {
  if (op !== 'Constant') return undefined;
  const [attribute] = attributes;
  const constant = attribute === undefined ? undefined : constantIn(attribute);
  if (constant === undefined) throw invalid(`node ${name} holds no number`, attribute?.name);
  return constant;
}

function constantIn({ type, t, f, i, floats, ints }: AttributeProto): OnnxConstant | undefined {
  const { TENSOR, FLOAT, FLOATS, INT, INTS } = AttributeProto_AttributeType;
  switch (type) {
    case TENSOR:
      return t === undefined ? undefined : readConstant(t);
    case FLOAT:
      return float32([], [f]);
    case FLOATS:
      return float32([floats.length], floats);
    case INT:
      return int64([], [i]);
    case INTS:
      return int64([ints.length], ints);
    default:
      return undefined;
  }
}

function readValue({ name, type }: ValueInfoProto): OnnxValue {
  if (type?.value.case !== 'tensorType') throw invalid(`${name} is no tensor`, type?.value.case);
  const { elemType, shape } = type.value.value;
  const dims = shape?.dim.map(({ value }, axis): Dim => {
    if (value.case === 'dimValue') return Number(value.value);
    return value.case === 'dimParam' && value.value !== '' ? value.value : `${name}.${axis}`;
  });
  return { name, type: elemType, shape: dims };
}

function invalid(what: string, value?: string): MillraceError {
  return new MillraceError('INVALID_MODEL', what, value === undefined ? {} : { value });
}
