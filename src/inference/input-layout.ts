import { type InputContract, isSequence } from '../core/request/family.ts';
import { ELEMENT_BYTES } from '../core/request/tensor.ts';
import type { ModelLimits, ModelVersion, TableInput, TileInputs } from './repository/model-version.ts';

/** An input whose rows requests send. */
export interface SentInput {
  name: string;
  datatype: InputContract['datatype'];
  /** Shape of one row: of the request, of one step of its sequence, or of a candidate. */
  rowShape: readonly number[];
  rowBytes: number;
  /** How many rows a request has: one, as many as its sequence is long, or one per candidate. */
  rows: 'one' | 'sequence' | 'candidate';
  required: boolean;
  /** Where the rows come from if only ids are sent. */
  table: TableInput | undefined;
}

/** The inputs of a model by how they are packed. */
export interface InputLayout {
  request: readonly SentInput[];
  candidate: readonly SentInput[];
  /** Names that a request may send on either side. */
  requestNames: readonly string[];
  candidateNames: readonly string[];
  /** `of`: position in `request` of the sequence whose rows it counts. */
  lengths: readonly { name: string; of: number }[];
  /** The input that holds, for each candidate, its request's row; it is made, never sent. */
  requestIndex: string;
  /** Inputs that say how candidates lie in tiles; made, never sent. */
  tiles: TileInputs | undefined;
  limits: ModelLimits;
}

export function inputLayout({ inputs, tables, tiles, limits }: ModelVersion): InputLayout {
  const on = (side: InputContract['side']): InputContract[] => inputs.filter((input) => input.side === side);
  const names = (some: readonly InputContract[]): string[] => some.map((input) => input.name);
  const request = on('request');
  const [index] = on('request-index');
  if (index === undefined) throw new RangeError('a model without a request index cannot be packed');
  return {
    request: request.map((input) => sentInput(input, tables)),
    candidate: on('candidate').map((input) => sentInput(input, tables)),
    requestNames: names([...request, ...on('request-length')]),
    candidateNames: names(on('candidate')),
    lengths: on('request-length').map(({ name, lengthOf }) => ({
      name,
      of: request.findIndex((input) => input.name === lengthOf),
    })),
    requestIndex: index.name,
    tiles,
    limits,
  };
}

function sentInput(input: InputContract, tables: readonly TableInput[]): SentInput {
  const { name, datatype, required } = input;
  const rows = input.side === 'candidate' ? 'candidate' : isSequence(input) ? 'sequence' : 'one';
  const rowShape = rows === 'one' ? input.shape : input.shape.slice(1);
  const table = tables.find((one) => one.input === name);
  const elements = rowShape.reduce((product, size) => product * size, 1);
  return { name, datatype, rowShape, rowBytes: elements * ELEMENT_BYTES[datatype], rows, required, table };
}
