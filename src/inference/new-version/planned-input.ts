import type { Dim } from '../onnx-file/graph.ts';

/** An input of a model file, as the version that is made of it will have it. */
export interface PlannedInput {
  readonly name: string;
  readonly side: 'request' | 'candidate';
  readonly datatype: 'FP32' | 'INT64';
  /** How the file has the input's rows: one for each candidate, a single one for all of them, or no axis for rows at all. */
  readonly rows: 'each' | 'one' | 'none';
  /** Shape of one row; of a sequence the first axis is a name. */
  readonly rowShape: readonly Dim[];
  /** The sequence whose rows it counts. */
  readonly lengthOf: string | undefined;
  /** Why it is of that side, for people. */
  readonly why: string;
}

export interface InputPlan {
  readonly inputs: readonly PlannedInput[];
  /** The file has a row per request and `request_index` already, as `millrace model compile` writes it. */
  readonly isShared: boolean;
  /** Whether such a file lays candidates out in tiles. */
  readonly usesTiles: boolean;
}

/** Whether each call decides how many rows of the input a request has. */
export function isSequenceInput({ side, rowShape }: PlannedInput): boolean {
  return side === 'request' && typeof rowShape[0] === 'string';
}

export function namesOf(inputs: readonly PlannedInput[], side: PlannedInput['side']): string[] {
  return inputs.filter((input) => input.side === side).map(({ name }) => name);
}
