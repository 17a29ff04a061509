import { MillraceError } from '../../core/errors.ts';
import type { Tensor } from '../../core/request/tensor.ts';
import type { ScoreItem } from '../../ports/accelerator.ts';

/** Inputs that requests may send to one stage, by name. */
export interface StageInputs {
  request: ReadonlySet<string>;
  candidate: ReadonlySet<string>;
}

/** The item as one stage takes it: what its model has no input for is left out, and of the candidates only those at `places` are there. */
export function itemOfStage(item: ScoreItem, inputs: StageInputs, places?: Uint32Array): ScoreItem {
  const requestTensors = item.requestTensors.filter(({ name }) => inputs.request.has(name));
  const sent = item.candidateTensors.filter(({ name }) => inputs.candidate.has(name));
  if (places === undefined) return { ...item, requestTensors, candidateTensors: sent };
  const ids = item.candidateIds;
  return {
    requestTensors,
    candidateTensors: sent.map((tensor) => chosenRows(tensor, places)),
    candidateIds: ids === null || ids === undefined ? null : chosenRows(ids, places),
    hints: item.hints,
    scoreLimit: places.length,
  };
}

/**
 * The rows of a tensor at ascending places of its first axis; elements of BYTES are found by walking their lengths.
 * @throws MillraceError INVALID_TENSOR where the tensor has not so many rows, or its bytes are not whole rows
 */
export function chosenRows(tensor: Tensor, places: Uint32Array): Tensor {
  const { name, datatype, shape, contents } = tensor;
  const rows = shape[0] ?? 0;
  const last = places.at(-1) ?? -1;
  if (last >= rows) throw misfit(name, `${rows} rows`, `at least ${last + 1}`);
  const parts = datatype === 'BYTES' ? texts(tensor, places) : equalRows(tensor, places, rows);
  return { name, datatype, shape: [places.length, ...shape.slice(1)], contents: joined(contents, parts) };
}

/** Where a row begins, and where it ends. */
type Stretch = readonly [number, number];

function equalRows({ name, contents }: Tensor, places: Uint32Array, rows: number): Stretch[] {
  const rowBytes = rows === 0 ? 0 : contents.length / rows;
  if (!Number.isInteger(rowBytes)) throw misfit(name, `${contents.length} bytes`, `${rows} equal rows`);
  return Array.from(places, (place): Stretch => [place * rowBytes, (place + 1) * rowBytes]);
}

function texts({ name, contents }: Tensor, places: Uint32Array): Stretch[] {
  const found: Stretch[] = [];
  let element = 0;
  for (let at = 0; found.length < places.length; element += 1) {
    const end = at + 4 <= contents.length ? at + 4 + contents.readUInt32LE(at) : Number.POSITIVE_INFINITY;
    if (end > contents.length) throw misfit(name, `${element} whole elements`, `at least ${element + 1}`);
    if (element === places[found.length]) found.push([at, end]);
    at = end;
  }
  return found;
}

function joined(contents: Buffer, parts: readonly Stretch[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, [start, end]) => sum + end - start, 0));
  let at = 0;
  for (const [start, end] of parts) at += contents.copy(bytes, at, start, end);
  return bytes;
}

function misfit(name: string, value: string, allowed: string): MillraceError {
  return new MillraceError('INVALID_TENSOR', `${name} has not a row for every candidate`, { value, allowed });
}
