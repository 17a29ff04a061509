import { create, toBinary } from '@bufbuild/protobuf';
import type { Dim, OnnxConstant, OnnxGraph, OnnxNode, OnnxValue } from './graph.ts';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from './onnx-proto.ts';

const PRODUCER = 'millrace';

/** A graph as an ONNX file; constants that no node reads are left out. */
export function writeGraph(graph: OnnxGraph): Uint8Array {
  const read = new Set(graph.nodes.flatMap(({ inputs }) => inputs));
  for (const { name } of graph.outputs) read.add(name);
  const model = create(ModelProtoSchema, {
    irVersion: graph.irVersion,
    producerName: PRODUCER,
    opsetImport: [{ domain: '', version: BigInt(graph.opset) }],
    graph: {
      name: graph.name,
      input: graph.inputs.map(valueInfo),
      output: graph.outputs.map(valueInfo),
      initializer: [...graph.constants]
        .filter(([name]) => read.has(name))
        .map(([name, constant]) => tensor(name, constant)),
      node: graph.nodes.map(nodeProto),
    },
  });
  return toBinary(ModelProtoSchema, model);
}

function nodeProto({ op, name, inputs, outputs, attributes }: OnnxNode) {
  return create(NodeProtoSchema, {
    opType: op,
    name,
    input: [...inputs],
    output: [...outputs],
    attribute: [...attributes],
  });
}

function tensor(name: string, { type, dims, bytes }: OnnxConstant): TensorProto {
  return create(TensorProtoSchema, { name, dataType: type, dims: dims.map(BigInt), rawData: bytes });
}

function valueInfo({ name, type, shape }: OnnxValue): ValueInfoProto {
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: 'tensorType', value: { elemType: type, ...shapeProto(shape) } } },
  });
}

function shapeProto(shape: OnnxValue['shape']) {
  return shape === undefined ? {} : { shape: { dim: shape.map(dimension) } };
}

function dimension(dim: Dim) {
  return typeof dim === 'number'
    ? { value: { case: 'dimValue' as const, value: BigInt(dim) } }
    : { value: { case: 'dimParam' as const, value: dim } };
}

export function intAttribute(name: string, value: number): AttributeProto {
  return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i: BigInt(value) });
}

export function intsAttribute(name: string, values: readonly number[]): AttributeProto {
  return create(AttributeProtoSchema, {
    name,
    type: AttributeProto_AttributeType.INTS,
    ints: values.map(BigInt),
  });
}

export function floatAttribute(name: string, value: number): AttributeProto {
  return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.FLOAT, f: value });
}
