import { listNames, MillraceError } from '../../core/errors.ts';
import type { Dim, OnnxGraph } from '../onnx-file/graph.ts';

/** The graph with sizes for axes that each call would decide. @throws MillraceError INVALID_CONFIG for an axis that no input has */
export function withSizes(graph: OnnxGraph, sizes: ReadonlyMap<string, number>): OnnxGraph {
  const axes = new Set(graph.inputs.flatMap(({ shape = [] }) => shape.slice(1).filter(isName)));
  for (const [axis, size] of sizes) {
    if (axes.has(axis)) continue;
    throw new MillraceError('INVALID_CONFIG', 'no input has such an axis', {
      value: `${axis}=${size}`,
      allowed: listNames(axes, 'none: all sizes are fixed'),
    });
  }
  return {
    ...graph,
    inputs: graph.inputs.map((input) => ({
      ...input,
      shape: input.shape?.map((size, axis) => (axis > 0 ? (sizes.get(String(size)) ?? size) : size)),
    })),
  };
}

/** The graph with these outputs alone. @throws MillraceError INVALID_CONFIG for one that it does not have */
export function chosenOutputs(graph: OnnxGraph, names: readonly string[] | undefined): OnnxGraph {
  if (names === undefined) return graph;
  const outputs = names.map((name) => {
    const output = graph.outputs.find((each) => each.name === name);
    if (output !== undefined) return output;
    throw new MillraceError('INVALID_CONFIG', 'the model has no such output', {
      value: name,
      allowed: listNames(graph.outputs.map((each) => each.name)),
    });
  });
  return { ...graph, outputs };
}

function isName(size: Dim): size is string {
  return typeof size === 'string';
}
