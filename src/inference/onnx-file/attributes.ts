import type { OnnxNode } from './graph.ts';

/** Attributes of a node as numbers; ONNX leaves out what has its default. */
export function intOf(node: OnnxNode, name: string, otherwise: number): number {
  const found = node.attributes.find((attribute) => attribute.name === name);
  return found === undefined ? otherwise : Number(found.i);
}

export function intsOf(node: OnnxNode, name: string): number[] | undefined {
  return node.attributes.find((attribute) => attribute.name === name)?.ints.map(Number);
}

export function floatOf(node: OnnxNode, name: string, otherwise: number): number {
  return node.attributes.find((attribute) => attribute.name === name)?.f ?? otherwise;
}
