import type { TrialTensor } from '../rocs/trial-batch.ts';
import type { MadeRequest } from './made-request.ts';
import { type InputPlan, namesOf, type PlannedInput } from './planned-input.ts';

const DEADLINE_MS = 10_000;

/** A request file for `millrace score`, with made-up numbers under the real names of the inputs. */
export function exampleRequest(family: string, { inputs }: InputPlan, request: MadeRequest): string {
  const written = (side: PlannedInput['side']): object =>
    Object.fromEntries(
      inputs
        .filter((input) => input.side === side && input.lengthOf === undefined)
        .map((input) => [input.name, writtenTensor(input, request.tensors.get(input.name))]),
    );
  const fields = {
    about: 'Made-up numbers under the names of the model, to be replaced by those of a real request.',
    model: family,
    deadlineMs: DEADLINE_MS,
    candidateIds: Array.from({ length: request.candidates }, (_, n) => `item-${n + 1}`),
    requestTensors: written('request'),
    candidateTensors: written('candidate'),
  };
  return `${JSON.stringify(fields, null, 2).replaceAll(NUMBERS, (numbers) => numbers.replaceAll(/\s+/g, ' '))}\n`;
}

/** The innermost lists: a row of numbers stays on one line. */
const NUMBERS = /\[[^[\]{}"]*\]/g;

/** `user [4], history [rows, 8], item [candidates, 4]`: what a request sends. */
export function sentShapes({ inputs }: InputPlan): string[] {
  return [...namesOf(inputs, 'request'), ...namesOf(inputs, 'candidate')].flatMap((name) => {
    const input = inputs.find((each) => each.name === name);
    if (input === undefined || input.lengthOf !== undefined) return [];
    const rows = input.rowShape.map((size) => (typeof size === 'number' ? String(size) : 'rows'));
    return [`${name} [${[...(input.side === 'candidate' ? ['candidates'] : []), ...rows].join(', ')}]`];
  });
}

function writtenTensor(input: PlannedInput, tensor: TrialTensor | undefined): unknown {
  const dims = tensor?.dims ?? [];
  const values = Array.from<number | bigint>(tensor?.data ?? []);
  const flat = values.map((value) => Math.round(Number(value) * 1e3) / 1e3);
  // A single number has no nesting to show its shape: a leading 1 stands for the request.
  const shape = dims.length === 0 ? [1] : dims;
  const written = nested(flat, shape);
  return input.datatype === 'FP32' ? written : { datatype: input.datatype, shape, values: written };
}

function nested(flat: readonly number[], [size = 0, ...rest]: readonly number[]): unknown[] {
  if (rest.length === 0) return [...flat];
  const width = rest.reduce((product, each) => product * each, 1);
  return Array.from({ length: size }, (_, n) => nested(flat.slice(n * width, (n + 1) * width), rest));
}
