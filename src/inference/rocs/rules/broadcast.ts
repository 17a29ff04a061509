import type { Dim, OnnxNode } from '../../onnx-file/graph.ts';
import { refusal } from '../refusal.ts';
import { rowsFactor } from '../size.ts';

/** The shape that shapes have together (https://onnx.ai/onnx/repo-docs/Broadcasting.html), their rows on the first axis. */
export function broadcast(node: OnnxNode, shapes: readonly (readonly Dim[])[]): Dim[] {
  const rank = Math.max(...shapes.map(({ length }) => length));
  for (const shape of shapes) {
    if (rowsFactor(shape) !== undefined && shape.length < rank) {
      throw refusal(
        node,
        'the rows of one input would meet another axis of the other',
        'Unsqueeze it first.',
      );
    }
  }
  return Array.from({ length: rank }, (_, axis) => sizeAt(node, shapes, rank, axis));
}

function sizeAt(node: OnnxNode, shapes: readonly (readonly Dim[])[], rank: number, axis: number): Dim {
  const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1).filter((size) => size !== 1);
  const [first = 1] = sizes;
  const other = sizes.find((size) => size !== first);
  if (other === undefined) return first;
  if (rowsFactor([first]) !== undefined || rowsFactor([other]) !== undefined) {
    throw refusal(
      node,
      `rows meet an axis of ${rowsFactor([first]) === undefined ? first : other}: a value of its own for each row`,
    );
  }
  throw refusal(node, `its inputs do not fit: ${first} against ${other}`);
}
