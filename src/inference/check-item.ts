import { MillraceError } from '../core/errors.ts';
import { firstNonFinite } from '../core/request/finite.ts';
import type { Tensor } from '../core/request/tensor.ts';
import type { ScoreItem } from '../ports/accelerator.ts';
import { type CandidateRows, rowsFromTable } from './candidate-rows.ts';
import type { InputLayout, SentInput } from './input-layout.ts';
import { VersionTables } from './items/version-tables.ts';

/** An item whose tensors may be packed as they are. */
export interface CheckedItem {
  /** By position of the layout's request inputs: all of its rows. */
  request: readonly Uint8Array[];
  /** By position of the layout's request inputs: 1, or the rows of a sequence. */
  requestRows: readonly number[];
  /** By position of the layout's lengths. */
  lengths: readonly number[];
  /** By position of the layout's candidate inputs: the rows of the candidates [0, count). */
  candidate: readonly CandidateRows[];
  /** Candidates to score. */
  count: number;
}

/**
 * Holds an item against the model's inputs; reads the tensors of the request and the candidates [0, scoreLimit), no more.
 * A request tensor may have a leading axis of 1. Rows of a candidate input that is not sent come from its item table; what is sent is fresher.
 * @throws MillraceError INVALID_TENSOR (missing, unknown, repeated, wrong datatype, shape or byte count), LIMIT_EXCEEDED,
 *   NON_FINITE (names the tensor and the index of the element), UNKNOWN_ITEM
 */
export function checkItem(
  layout: InputLayout,
  item: ScoreItem,
  tables: VersionTables = VersionTables.none,
): CheckedItem {
  const { requestTensors, candidateTensors, scoreLimit } = item;
  if (!Number.isInteger(scoreLimit) || scoreLimit < 0) {
    throw new MillraceError('INVALID_REQUEST', 'scoreLimit is no count', {
      value: scoreLimit,
      allowed: '0 or more',
    });
  }
  checkLimit('scoreLimit', scoreLimit, layout.limits.candidatesMax);
  checkBytes(item, layout.limits.tensorBytesMax);
  checkNames(requestTensors, layout.requestNames);
  checkNames(candidateTensors, layout.candidateNames);

  const sent = layout.request.map((input) =>
    requestRows(input, requestTensors, layout.limits.sequenceLengthMax),
  );
  const rows = sent.map((one) => one.rows);
  return {
    request: sent.map((one) => one.contents),
    requestRows: rows,
    lengths: layout.lengths.map(({ name, of }) => sentLength(name, requestTensors, rows[of] ?? 0)),
    candidate: candidateRows(layout.candidate, item, tables),
    count: scoreLimit,
  };
}

function checkBytes(item: ScoreItem, tensorBytesMax: number): void {
  let bytes = 0;
  for (const tensor of item.requestTensors) bytes += tensor.contents.length;
  for (const tensor of item.candidateTensors) bytes += tensor.contents.length;
  checkLimit('the bytes of all tensors', bytes, tensorBytesMax);
}

function checkLimit(what: string, value: number, max: number): void {
  if (value > max)
    throw new MillraceError('LIMIT_EXCEEDED', `${what} passes the model's limit`, {
      value,
      allowed: `at most ${max}`,
    });
}

function checkNames(tensors: readonly Tensor[], names: readonly string[]): void {
  tensors.forEach(({ name }, position) => {
    if (!names.includes(name)) {
      const allowed = names.join(', ') || 'none';
      throw new MillraceError('INVALID_TENSOR', 'the model has no such input', { value: name, allowed });
    }
    if (tensors.findIndex((tensor) => tensor.name === name) < position) {
      throw new MillraceError('INVALID_TENSOR', 'a tensor is sent twice', { value: name });
    }
  });
}

function requestRows(
  input: SentInput,
  tensors: readonly Tensor[],
  rowsMax: number,
): { contents: Uint8Array; rows: number } {
  const tensor = find(input.name, tensors);
  if (tensor === undefined) {
    // Only of a sequence are no rows what was meant: those of a feature source were put in before.
    if (!input.required && input.rows === 'sequence') return { contents: new Uint8Array(0), rows: 0 };
    throw missing(input.name);
  }
  const sequence = input.rows === 'sequence';
  const rank = input.rowShape.length + (sequence ? 1 : 0);
  const shape =
    tensor.shape.length === rank + 1 && tensor.shape[0] === 1 ? tensor.shape.slice(1) : tensor.shape;
  const rows = sequence ? (shape[0] ?? -1) : 1;
  checkShape(input, tensor, sequence ? shape.slice(1) : shape, rows);
  if (sequence) checkLimit(`${input.name}: the sequence length`, rows, rowsMax);
  checkFinite(input, tensor.contents);
  return { contents: tensor.contents, rows };
}

/** The length of a sequence: the rows sent, or fewer where the request says that the last ones are padding. */
function sentLength(name: string, tensors: readonly Tensor[], rows: number): number {
  const tensor = find(name, tensors);
  if (tensor === undefined) return rows;
  const elements = tensor.shape.reduce((product, size) => product * size, 1);
  if (tensor.datatype !== 'INT64' || elements !== 1 || tensor.contents.length !== 8) {
    throw new MillraceError('INVALID_TENSOR', `${name} is no length`, {
      value: `${tensor.datatype} [${tensor.shape.join(', ')}] of ${tensor.contents.length} bytes`,
      allowed: 'INT64 [] or [1]',
    });
  }
  const length = Number(tensor.contents.readBigInt64LE(0));
  if (length >= 0 && length <= rows) return length;
  throw new MillraceError('INVALID_TENSOR', `${name} does not fit the rows sent`, {
    value: length,
    allowed: `0 to ${rows}`,
  });
}

function candidateRows(
  inputs: readonly SentInput[],
  { candidateTensors, candidateIds, scoreLimit: count }: ScoreItem,
  tables: VersionTables,
): CandidateRows[] {
  let candidates: number | undefined;
  return inputs.map((input) => {
    const tensor = find(input.name, candidateTensors);
    if (tensor === undefined && input.table !== undefined)
      return rowsFromTable(input.table, candidateIds, tables, count);
    if (tensor === undefined) throw missing(input.name);
    const rows = tensor.shape[0] ?? -1;
    checkShape(input, tensor, tensor.shape.slice(1), rows);
    if (rows < count || (candidates !== undefined && rows !== candidates)) {
      throw new MillraceError('INVALID_TENSOR', `${input.name} has the wrong number of candidates`, {
        value: rows,
        allowed:
          candidates === undefined ? `at least ${count}` : `${candidates}, as the other candidate tensors`,
      });
    }
    candidates = rows;
    const prefix = tensor.contents.subarray(0, count * input.rowBytes);
    checkFinite(input, prefix);
    return prefix;
  });
}

const ROW_AXIS = { one: [], sequence: ['T'], candidate: ['N'] } as const;

/** `shape`: without the axis of rows, if there is one. */
function checkShape(input: SentInput, tensor: Tensor, shape: readonly number[], rows: number): void {
  const same =
    shape.length === input.rowShape.length && shape.every((size, axis) => size === input.rowShape[axis]);
  const whole = Number.isSafeInteger(rows) && rows >= 0 && tensor.contents.length === rows * input.rowBytes;
  if (tensor.datatype === input.datatype && same && whole) return;
  const wanted = [...ROW_AXIS[input.rows], ...input.rowShape];
  throw new MillraceError('INVALID_TENSOR', `${input.name} does not fit the model`, {
    value: `${tensor.datatype} [${tensor.shape.join(', ')}] of ${tensor.contents.length} bytes`,
    allowed: `${input.datatype} [${wanted.join(', ')}] with ${input.rowBytes} bytes a row`,
  });
}

function checkFinite(input: SentInput, contents: Uint8Array): void {
  const index = firstNonFinite(contents, input.datatype);
  if (index >= 0) {
    throw new MillraceError('NON_FINITE', `${input.name}: element ${index} is NaN or infinite`, {
      advice: 'Replace missing features by a number before sending.',
    });
  }
}

function find(name: string, tensors: readonly Tensor[]): Tensor | undefined {
  return tensors.find((tensor) => tensor.name === name);
}

function missing(name: string): MillraceError {
  return new MillraceError('INVALID_TENSOR', 'an input is missing', { allowed: name });
}
