import { readConstant } from '../onnx-file/constant.ts';
import type { OnnxGraph, OnnxNode } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';

const { BOOL, FLOAT, INT64 } = TensorProto_DataType;
const TO_BOOL: ReadonlySet<string> = new Set([
  ...[
    'And',
    'Equal',
    'Greater',
    'GreaterOrEqual',
    'IsInf',
    'IsNaN',
    'Less',
    'LessOrEqual',
    'Not',
    'Or',
    'Xor',
  ],
]);

/** Which type the numbers of each tensor of a graph have (`TensorProto_DataType`), by name. */
export function elementTypes(graph: OnnxGraph): Map<string, number> {
  const types = new Map<string, number>();
  for (const { name, type } of graph.inputs) types.set(name, type);
  for (const [name, { type }] of graph.constants) types.set(name, type);
  for (const node of graph.nodes) for (const output of node.outputs) types.set(output, typeOf(node, types));
  return types;
}

function typeOf({ op, inputs, attributes }: OnnxNode, types: ReadonlyMap<string, number>): number {
  if (TO_BOOL.has(op)) return BOOL;
  if (op === 'Shape') return INT64;
  if (op === 'Cast') return Number(attributes.find(({ name }) => name === 'to')?.i ?? FLOAT);
  if (op === 'ConstantOfShape') {
    const value = attributes.find(({ name }) => name === 'value')?.t;
    return value === undefined ? FLOAT : readConstant(value).type;
  }
  return types.get(inputs[op === 'Where' ? 1 : 0] ?? '') ?? FLOAT;
}
