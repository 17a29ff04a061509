import { intAttribute } from '../../onnx-file/write-graph.ts';
import { refusal } from '../refusal.ts';
import type { Level, Part, TensorValue } from '../value.ts';
import type { Step } from './step.ts';

/** Where the parts of several values begin and end along one axis, 0 and the whole size among them. */
export function boundariesOf({ node }: Step, values: readonly TensorValue[], axis: number): number[] {
  const boundaries = new Set<number>([0]);
  for (const { parts } of values.filter(({ shape }) => shape[axis] !== 1)) {
    let at = 0;
    for (const { size } of parts) {
      if (typeof size !== 'number') throw refusal(node, `a part has a size that only a call knows (${size})`);
      at += size;
      boundaries.add(at);
    }
  }
  return [...boundaries].sort((a, b) => a - b);
}

/** The stretch [start, end) of a value along an axis that its parts divide, with a row for each row of `level`. */
export function pieceOf(
  step: Step,
  value: TensorValue,
  axis: number,
  start: number,
  end: number,
  level: Level,
): string {
  const { into } = step;
  const names: string[] = [];
  let at = 0;
  for (const part of value.parts) {
    const size = value.parts.length === 1 ? Number(value.shape[axis]) : Number(part.size);
    const [from, to] = [Math.max(start - at, 0), Math.min(end - at, size)];
    at += size;
    if (from >= to) continue;
    names.push(into.partAt(stretch(step, part, axis, from, to, size), level).name);
  }
  const [first] = names;
  if (first === undefined) throw new RangeError(`no part lies in ${start} to ${end}`);
  return names.length === 1 ? first : into.emit('Concat', names, level, [intAttribute('axis', axis)]);
}

/** [from, to) of a part that is `size` long along `axis`. */
export function stretch(
  { into }: Step,
  part: Part,
  axis: number,
  from: number,
  to: number,
  size: number,
): Part {
  if (from === 0 && to === size) return part;
  const bounds = [[from], [to], [axis], [1]].map((each) => into.integers(each));
  return { ...part, name: into.emit('Slice', [part.name, ...bounds], part.level), size: to - from };
}
