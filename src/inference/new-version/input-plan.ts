import { MillraceError } from '../../core/errors.ts';
import type { OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import { tableRows } from '../rocs/trial-batch.ts';
import { checkNames, checkSizes } from './input-bounds.ts';
import { axisOf, inputSides, type SaidSides } from './input-sides.ts';
import { REQUEST_INDEX, TILE_INPUTS } from './made-inputs.ts';
import { type InputPlan, isSequenceInput, type PlannedInput } from './planned-input.ts';

export interface SaidInputs extends SaidSides {
  /** By the input that counts rows: the sequence whose rows it counts. */
  readonly lengths: ReadonlyMap<string, string>;
}

const DATATYPES: ReadonlyMap<number, PlannedInput['datatype']> = new Map([
  [TensorProto_DataType.FLOAT, 'FP32'],
  [TensorProto_DataType.INT64, 'INT64'],
]);

/** What a version can say of the file's inputs. @throws MillraceError INVALID_MODEL, INVALID_CONFIG */
export function planInputs(graph: OnnxGraph, said: SaidInputs): InputPlan {
  checkNames(graph);
  graph.inputs.forEach(checkSizes);
  const index = graph.inputs.find(({ name, shape }) => name === REQUEST_INDEX && shape?.length === 1);
  const isMade = ({ name }: OnnxValue): boolean =>
    index !== undefined && (name === REQUEST_INDEX || TILE_INPUTS.includes(name));
  const sent = graph.inputs.filter((input) => !isMade(input));
  const sides = inputSides(graph, sent, said, index?.shape?.[0]);
  const candidateAxes = sent.filter(({ name }) => sides.get(name)?.side === 'candidate').map(axisOf);
  const inputs = sent.map((input): PlannedInput => {
    const { side = 'request', why = '' } = sides.get(input.name) ?? {};
    return { ...readInput(input, side, candidateAxes, index !== undefined), side, why, lengthOf: undefined };
  });
  return {
    inputs: withLengths(graph, inputs, said.lengths),
    isShared: index !== undefined,
    usesTiles: index !== undefined && graph.inputs.some(({ name }) => TILE_INPUTS.includes(name)),
  };
}

function readInput(
  input: OnnxValue,
  side: PlannedInput['side'],
  candidateAxes: readonly (string | undefined)[],
  isShared: boolean,
): Pick<PlannedInput, 'name' | 'datatype' | 'rows' | 'rowShape'> {
  const { name, type, shape } = input;
  const datatype = DATATYPES.get(type);
  if (datatype === undefined) {
    throw new MillraceError('INVALID_MODEL', `input ${name} is of a datatype that no request can send`, {
      value: typeName(type),
      allowed: 'FLOAT (FP32) and INT64',
      advice: 'Export the model with a Cast behind an input of one of these.',
    });
  }
  if (shape === undefined) {
    throw new MillraceError('INVALID_MODEL', `the file does not say how many axes input ${name} has`, {
      advice: 'Export it with shapes.',
    });
  }
  const rows = rowsOf(input, side, candidateAxes, isShared);
  const rowShape = rows === 'none' ? shape : shape.slice(1);
  checkRowShape(name, side, rowShape);
  return { name, datatype, rows, rowShape };
}

function typeName(type: number): string {
  const found = Object.entries(TensorProto_DataType).find(([, number]) => number === type);
  return found?.[0] ?? String(type);
}

function rowsOf(
  input: OnnxValue,
  side: PlannedInput['side'],
  candidateAxes: readonly (string | undefined)[],
  isShared: boolean,
): PlannedInput['rows'] {
  const axis = axisOf(input);
  if (side === 'candidate') {
    if (axis !== undefined) return 'each';
    throw new MillraceError('INVALID_MODEL', `input ${input.name} has no axis that counts candidates`, {
      value: `[${input.shape?.join(', ')}]`,
      allowed: 'a first dimension that each call decides',
      advice: 'Export it with a dynamic first axis, or name it in --request-inputs.',
    });
  }
  if (axis === undefined) return input.shape?.[0] === 1 ? 'one' : 'none';
  return isShared || !candidateAxes.includes(axis) ? 'one' : 'each';
}

/** Beside rows, only the rows of a request's sequence may be as many as a call has. */
function checkRowShape(name: string, side: string, rowShape: PlannedInput['rowShape']): void {
  const free = rowShape.findIndex(
    (size, axis) => typeof size === 'string' && (side !== 'request' || axis > 0),
  );
  if (free < 0) {
    if (!rowShape.includes(0)) return;
    throw new MillraceError('INVALID_MODEL', `input ${name} has rows without numbers`, { value: rowShape });
  }
  throw new MillraceError('INVALID_MODEL', `input ${name} has an axis whose size each call decides`, {
    value: rowShape[free],
    allowed: "the rows, and of a request's input one axis behind them",
    advice:
      side === 'candidate'
        ? `A row is one candidate: export the model without an axis for lists of them. Or give the axis a size: --size ${rowShape[free]}=<n>`
        : `Give it a size: --size ${rowShape[free]}=<n>`,
  });
}

/** Sequences of a batch are padded to the longest: each needs an input that says how many of its rows are its own. */
function withLengths(
  graph: OnnxGraph,
  inputs: readonly PlannedInput[],
  said: ReadonlyMap<string, string>,
): PlannedInput[] {
  const sequences = inputs.filter(isSequenceInput).map(({ name }) => name);
  const counters = inputs.filter((input) => isCounter(graph, input)).map(({ name }) => name);
  for (const [length, sequence] of said) checkSaid(length, sequence, { sequences, counters });
  const lengths = new Map(said);
  for (const sequence of sequences) {
    if ([...lengths.values()].includes(sequence)) continue;
    const free = counters.filter((name) => !lengths.has(name));
    const own = free.filter((name) => name.startsWith(sequence));
    const [length] = own.length === 1 ? own : sequences.length === 1 && free.length === 1 ? free : [];
    if (length === undefined) throw withoutLength(inputs, sequence, free);
    lengths.set(length, sequence);
  }
  return inputs.map((input) => {
    const sequence = lengths.get(input.name);
    return sequence === undefined
      ? input
      : { ...input, lengthOf: sequence, why: `counts the rows of ${sequence}` };
  });
}

/** One whole number per request that picks no row of a table. */
function isCounter(graph: OnnxGraph, { name, side, datatype, rowShape, rows }: PlannedInput): boolean {
  const isOne = rowShape.length === 0 || (rows === 'none' && rowShape.length === 1 && rowShape[0] === 1);
  return side === 'request' && datatype === 'INT64' && isOne && tableRows(graph, name) === undefined;
}

function checkSaid(
  length: string,
  sequence: string,
  { sequences, counters }: { sequences: string[]; counters: string[] },
): void {
  if (sequences.includes(sequence) && counters.includes(length)) return;
  throw new MillraceError('INVALID_CONFIG', 'this input does not count the rows of that one', {
    value: `${length}=${sequence}`,
    allowed: `one of ${counters.join(', ') || '(no INT64 input with one number per request)'} = one of ${sequences.join(', ') || '(no sequence)'}`,
  });
}

function withoutLength(
  inputs: readonly PlannedInput[],
  sequence: string,
  free: readonly string[],
): MillraceError {
  const size = inputs.find(({ name }) => name === sequence)?.rowShape[0];
  return new MillraceError(
    'INVALID_MODEL',
    `${sequence} has as many rows as a request has, and it is not clear which input says how many`,
    {
      value: free.length > 0 ? free.join(', ') : 'no INT64 input with one number per request',
      allowed: `an INT64 input [rows], such as ${sequence}_length, so that rows of padding are not read`,
      advice: `${free.length > 0 ? `Name it: --lengths ${free[0]}=${sequence}. Or give` : 'Give'} the sequence one size: --size ${size}=<n>`,
    },
  );
}
