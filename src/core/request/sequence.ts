import { type FamilyContract, type InputContract, isSequence } from './family.ts';
import { type Rejection, reject } from './rejection.ts';
import type { Tensor } from './tensor.ts';

/** Dimensions that a sent tensor has before the declared ones: a request-side tensor may have a leading 1, its batch axis. */
export function batchAxes(input: InputContract, shape: readonly number[]): number {
  return input.side !== 'candidate' && shape.length === input.shape.length + 1 && shape[0] === 1 ? 1 : 0;
}

/** Rows of a sequence input in a checked request: the size of its first free dimension; 0 where it was not sent. */
export function sequenceRows(input: InputContract, tensor: Tensor | undefined): number {
  if (tensor === undefined) return 0;
  return tensor.shape[input.shape.indexOf(-1) + batchAxes(input, tensor.shape)] ?? 0;
}

/** Position of the sequence input that a `request-length` input counts; -1 where the family has none. */
function countedInput(family: FamilyContract, length: InputContract): number {
  return family.inputs.findIndex((input) =>
    length.lengthOf === undefined ? isSequence(input) : input.name === length.lengthOf,
  );
}

/**
 * Length of the longest sequence: the length that was sent for it, else its rows; `undefined` where the family has no
 * sequence input.
 */
export function longestSequence(
  family: FamilyContract,
  tensors: readonly (Tensor | undefined)[],
): number | undefined {
  let longest: number | undefined;
  for (let index = 0; index < family.inputs.length; index++) {
    const input = family.inputs[index];
    if (input === undefined || !isSequence(input)) continue;
    const length = sentLength(family, index, tensors) ?? sequenceRows(input, tensors[index]);
    longest = Math.max(longest ?? 0, length);
  }
  return longest;
}

function sentLength(
  family: FamilyContract,
  sequence: number,
  tensors: readonly (Tensor | undefined)[],
): number | undefined {
  for (let index = 0; index < family.inputs.length; index++) {
    const input = family.inputs[index];
    const tensor = tensors[index];
    if (input?.side !== 'request-length' || tensor === undefined) continue;
    if (countedInput(family, input) === sequence) return readLength(tensor);
  }
  return undefined;
}

/** A length that was sent must lie within the rows that were sent: what comes after it is padding. */
export function checkLengths(
  family: FamilyContract,
  tensors: readonly (Tensor | undefined)[],
): Rejection | undefined {
  for (let index = 0; index < family.inputs.length; index++) {
    const input = family.inputs[index];
    const tensor = tensors[index];
    if (input?.side !== 'request-length' || tensor === undefined) continue;
    const counted = countedInput(family, input);
    const sequence = family.inputs[counted];
    const rows = sequence === undefined ? 0 : sequenceRows(sequence, tensors[counted]);
    const length = readLength(tensor);
    if (length >= 0 && length <= rows) continue;
    return reject('INVALID_TENSOR', `tensor ${JSON.stringify(input.name)} counts rows that were not sent`, {
      value: length,
      allowed: `0 to ${rows}`,
      advice: 'Leave it out to use all rows that you send.',
    });
  }
  return undefined;
}

/** The one element of a length tensor; NaN where it is no integer tensor of one element. */
function readLength(tensor: Tensor): number {
  const { contents, datatype } = tensor;
  if (datatype === 'INT64' && contents.length === 8) return Number(contents.readBigInt64LE(0));
  if (datatype === 'INT32' && contents.length === 4) return contents.readInt32LE(0);
  return Number.NaN;
}
