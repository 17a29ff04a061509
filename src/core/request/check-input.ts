import type { FamilyContract, InputContract } from './family.ts';
import { firstNonFinite } from './finite.ts';
import type { RequestLimits } from './limits.ts';
import { type Rejection, reject } from './rejection.ts';
import { batchAxes } from './sequence.ts';
import type { Tensor } from './tensor.ts';
import { checkTensorSize } from './tensor-size.ts';

/** Checks one tensor against its input: datatype, size, shape, and on the request side its values. */
export function checkInput(
  input: InputContract,
  tensor: Tensor,
  family: FamilyContract,
  candidateCount: number,
  limits: RequestLimits,
): Rejection | undefined {
  if (tensor.datatype !== input.datatype)
    return reject(
      'INVALID_TENSOR',
      `tensor ${JSON.stringify(input.name)} has another datatype than its input`,
      {
        value: tensor.datatype,
        allowed: input.datatype,
      },
    );
  const size = checkTensorSize(tensor, input.datatype, limits.tensorRankMax, input.name);
  if (typeof size !== 'number') return size;
  const refused = checkShape(input, tensor, family, candidateCount);
  if (refused !== undefined) return refused;
  return input.side === 'candidate' ? undefined : checkFinite(tensor, input);
}

function checkShape(
  input: InputContract,
  tensor: Tensor,
  family: FamilyContract,
  candidateCount: number,
): Rejection | undefined {
  const { shape } = tensor;
  const skipped = batchAxes(input, shape);
  if (!fitsDeclared(shape, skipped, input.shape))
    return reject('INVALID_TENSOR', `tensor ${JSON.stringify(input.name)} has another shape than its input`, {
      value: shape,
      allowed: `${JSON.stringify(input.shape)}, -1 being any size`,
    });
  if (input.side === 'candidate' && shape[0] !== candidateCount)
    return reject(
      'INVALID_TENSOR',
      `tensor ${JSON.stringify(input.name)} has another number of candidates than the first candidate tensor`,
      {
        value: shape,
        allowed: `a first dimension of ${candidateCount}`,
      },
    );
  return checkFreeSizes(input, shape, skipped, family);
}

/** Whether the dimensions after the skipped ones are as declared, any size for -1. */
function fitsDeclared(shape: readonly number[], skipped: number, declared: readonly number[]): boolean {
  if (shape.length - skipped !== declared.length) return false;
  for (let axis = 0; axis < declared.length; axis++)
    if (declared[axis] !== -1 && declared[axis] !== shape[axis + skipped]) return false;
  return true;
}

function checkFreeSizes(
  input: InputContract,
  shape: readonly number[],
  skipped: number,
  family: FamilyContract,
): Rejection | undefined {
  const firstAxis = input.side === 'candidate' ? 1 : 0;
  for (let axis = firstAxis; axis < input.shape.length; axis++) {
    const size = shape[axis + skipped] ?? 0;
    if (input.shape[axis] !== -1 || size <= family.sequenceLengthMax) continue;
    return reject('LIMIT_EXCEEDED', `tensor ${JSON.stringify(input.name)} is too long`, {
      value: shape,
      allowed: `at most ${family.sequenceLengthMax} in a free dimension`,
      advice: 'Send the newest rows.',
    });
  }
  return undefined;
}

function checkFinite(tensor: Tensor, input: InputContract): Rejection | undefined {
  const index = firstNonFinite(tensor.contents, input.datatype);
  if (index < 0) return undefined;
  return reject('NON_FINITE', `tensor ${JSON.stringify(input.name)} holds NaN or an infinity`, {
    value: `element ${index}`,
    allowed: 'finite numbers',
    advice: 'Replace unknown values before sending, for example by 0.',
  });
}
