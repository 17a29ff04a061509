import { MillraceError } from '../../core/errors.ts';
import { ELEMENT_BYTES } from '../../core/request/tensor.ts';
import type { OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import { REQUEST_INDEX, TILE_INPUTS } from './made-inputs.ts';
import type { InputPlan, PlannedInput } from './planned-input.ts';

const NAME_LENGTH_MAX = 256;
/** Inputs that a version has beside what requests send. */
const MADE_INPUTS: readonly string[] = [REQUEST_INDEX, ...TILE_INPUTS];
/** No control, format or unassigned characters, no breaks of lines: requests, YAML and messages hold the rest as it is. */
const PLAIN_NAME = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;

/**
 * Requests, config.yaml and ONNX Runtime know inputs and outputs by their names.
 * @throws MillraceError INVALID_MODEL for one that they could not hold
 */
export function checkNames({
  inputs,
  outputs,
  nodes,
}: Pick<OnnxGraph, 'inputs' | 'outputs' | 'nodes'>): void {
  const taken = nodes.flatMap((node) => node.outputs).find((name) => MADE_INPUTS.includes(name));
  if (taken !== undefined) throw badName('inner value', taken, 'no name of an input that millrace adds');
  for (const [what, values] of [
    ['input', inputs],
    ['output', outputs],
  ] as const)
    for (const { name } of values) {
      // ONNX Runtime's binding keeps tensors as properties of plain objects, where these are taken; files of a version refuse `prototype` too.
      if (name in Object.prototype || name === 'prototype')
        throw badName(what, name, 'no name that JavaScript objects have already');
      if (name.length > NAME_LENGTH_MAX) throw badName(what, name, `at most ${NAME_LENGTH_MAX} characters`);
      if (!PLAIN_NAME.test(name)) throw badName(what, name, 'printable characters, on one line');
    }
}

function badName(what: string, name: string, allowed: string): MillraceError {
  return new MillraceError('INVALID_MODEL', `an ${what} has a name that requests cannot use`, {
    value: name,
    allowed,
    advice: 'Export the model with another name for it.',
  });
}

/** @throws MillraceError INVALID_MODEL for a size that no tensor can have */
export function checkSizes({ name, shape = [] }: OnnxValue): void {
  const bad = shape.find((size) => typeof size === 'number' && !(Number.isSafeInteger(size) && size >= 0));
  if (bad === undefined) return;
  throw new MillraceError('INVALID_MODEL', `input ${name} has an axis of a size that no tensor can have`, {
    value: bad,
    allowed: 'whole numbers from 1, or a name where each call decides',
    advice: 'Export the model with that axis dynamic, or with its size.',
  });
}

/**
 * How many candidates one request can send within the bound: no version needs to be tried with more.
 * @throws MillraceError INVALID_MODEL where one candidate is too many already
 */
export function candidatesWithin({ inputs }: Pick<InputPlan, 'inputs'>, requestBytesMax: number): number {
  let once = 0;
  let each = 0;
  for (const input of inputs) {
    const bytes = rowBytes(input);
    if (bytes > requestBytesMax)
      throw tooLarge(`a row of input ${input.name} is`, input, bytes, requestBytesMax);
    if (input.side === 'candidate') each += bytes;
    else once += bytes;
    if (once + each > requestBytesMax)
      throw tooLarge(
        `with input ${input.name}, the tensors of one candidate are`,
        input,
        once + each,
        requestBytesMax,
      );
  }
  return each === 0 ? Number.POSITIVE_INFINITY : Math.floor((requestBytesMax - once) / each);
}

/** Of a sequence one row. */
function rowBytes({ datatype, rowShape }: PlannedInput): number {
  return rowShape.reduce<number>(
    (product, size) => product * (typeof size === 'number' ? size : 1),
    ELEMENT_BYTES[datatype],
  );
}

function tooLarge(what: string, { rowShape }: PlannedInput, bytes: number, max: number): MillraceError {
  return new MillraceError('INVALID_MODEL', `${what} larger than any request`, {
    value: `${bytes} bytes, ${rowShape.join(' × ')} numbers`,
    allowed: `at most ${max} bytes (limits.requestBytesMax)`,
    advice: 'Export the model with smaller inputs, or have it look rows up by their ids.',
  });
}
