import { MillraceError } from '../../core/errors.ts';
import type { OnnxNode } from '../onnx-file/graph.ts';

/** A model that cannot be compiled as it is: names the node, what stands against it, and what to do. */
export function refusal(node: OnnxNode, why: string, advice?: string): MillraceError {
  const inputs = node.inputs.filter((input) => input !== '').join(', ');
  return new MillraceError('INVALID_MODEL', `node ${node.name}, ${node.op}(${inputs}): ${why}`, {
    ...(advice === undefined ? {} : { advice }),
  });
}
