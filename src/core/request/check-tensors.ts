import { checkInput } from './check-input.ts';
import { entityIdOf } from './entity-id.ts';
import type { FamilyContract, InputContract } from './family.ts';
import type { RequestFields } from './fields.ts';
import type { RequestLimits } from './limits.ts';
import { fieldOf, placeTensors } from './place-tensors.ts';
import { type Rejection, reject } from './rejection.ts';
import { checkLengths, longestSequence } from './sequence.ts';
import type { Tensor } from './tensor.ts';
import { checkTensorSize } from './tensor-size.ts';

/** What the tensors of a request come to, in the order of the family's inputs. */
export interface CheckedTensors {
  status: 'checked';
  tensors: (Tensor | undefined)[];
  candidateCount: number;
  sequenceLength: number | undefined;
  tensorBytes: number;
}

/**
 * Checks all tensors against the family: names, datatypes, shapes, sizes, the number of candidates, finite values on the
 * request side. Values on the candidate side are not read: whoever packs them for the accelerator checks them.
 */
export function checkTensors(
  request: RequestFields,
  family: FamilyContract,
  limits: RequestLimits,
): CheckedTensors | Rejection {
  const tensorBytes = countTensorBytes(request);
  const tensors: (Tensor | undefined)[] = family.inputs.map(() => undefined);
  const candidateCount = readCandidateCount(request);
  const refused =
    checkTensorBytes(tensorBytes, family, limits) ??
    placeTensors(request.requestTensors, 'requestTensors', family, tensors) ??
    placeTensors(request.candidateTensors, 'candidateTensors', family, tensors) ??
    checkCandidateCount(candidateCount, family) ??
    checkCandidateIds(request.candidateIds, candidateCount, limits) ??
    checkInputs(family, tensors, candidateCount, request, limits) ??
    checkLengths(family, tensors);
  if (refused !== undefined) return refused;
  return {
    status: 'checked',
    tensors,
    candidateCount,
    sequenceLength: longestSequence(family, tensors),
    tensorBytes,
  };
}

function countTensorBytes(request: RequestFields): number {
  let bytes = request.candidateIds?.contents.length ?? 0;
  for (const tensor of request.requestTensors) bytes += tensor.contents.length;
  for (const tensor of request.candidateTensors) bytes += tensor.contents.length;
  return bytes;
}

function checkTensorBytes(
  bytes: number,
  family: FamilyContract,
  limits: RequestLimits,
): Rejection | undefined {
  const bytesMax = Math.min(family.tensorBytesMax, limits.tensorBytesMax);
  if (bytes <= bytesMax) return undefined;
  return reject('LIMIT_EXCEEDED', `the tensors are too large for model ${JSON.stringify(family.family)}`, {
    value: `${bytes} bytes`,
    allowed: `at most ${bytesMax} bytes together`,
    advice: 'Send fewer candidates or a shorter sequence, or send candidates by id.',
  });
}

/** N as the first of them says: a candidate tensor, the candidate ids; 0 without either. The others are checked against it. */
function readCandidateCount(request: RequestFields): number {
  const leading = request.candidateTensors[0] ?? request.candidateIds;
  return leading === null ? 0 : (leading.shape[0] ?? 0);
}

function checkCandidateCount(candidateCount: number, family: FamilyContract): Rejection | undefined {
  if (!Number.isSafeInteger(candidateCount) || candidateCount < 0)
    return reject('INVALID_TENSOR', 'the first dimension of the candidates is no count', {
      value: candidateCount,
      allowed: 'whole numbers from 0',
    });
  if (candidateCount <= family.candidatesMax) return undefined;
  return reject('LIMIT_EXCEEDED', 'the request has too many candidates', {
    value: candidateCount,
    allowed: `at most ${family.candidatesMax} for model ${JSON.stringify(family.family)}`,
    advice: 'Send the best ones, or split the request.',
  });
}

function checkCandidateIds(
  ids: Tensor | null,
  candidateCount: number,
  limits: RequestLimits,
): Rejection | undefined {
  if (ids === null) return undefined;
  if (ids.datatype !== 'INT64' && ids.datatype !== 'BYTES')
    return reject('INVALID_TENSOR', 'candidateIds has a datatype that ids do not come in', {
      value: ids.datatype,
      allowed: 'INT64, BYTES',
    });
  const size = checkTensorSize(ids, ids.datatype, limits.tensorRankMax, 'candidateIds');
  if (typeof size !== 'number') return size;
  if (ids.shape.length === 1 && ids.shape[0] === candidateCount) return undefined;
  return reject('INVALID_TENSOR', 'candidateIds does not have one id per candidate', {
    value: ids.shape,
    allowed: `[${candidateCount}], the first dimension of the candidate tensors`,
  });
}

function checkInputs(
  family: FamilyContract,
  tensors: readonly (Tensor | undefined)[],
  candidateCount: number,
  request: RequestFields,
  limits: RequestLimits,
): Rejection | undefined {
  for (let index = 0; index < family.inputs.length; index++) {
    const input = family.inputs[index];
    const tensor = tensors[index];
    if (input === undefined) continue;
    const refused =
      tensor === undefined
        ? checkAbsent(input, candidateCount, request)
        : checkInput(input, tensor, family, candidateCount, limits);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** An input that was not sent: fine where it is optional or computed, where there are no candidates, and where its rows are found by ids that were sent. */
function checkAbsent(
  input: InputContract,
  candidateCount: number,
  request: RequestFields,
): Rejection | undefined {
  const { side, required } = input;
  if (side === 'request-index' || side === 'request-length') return undefined;
  if (side === 'candidate' && candidateCount === 0) return undefined;
  const ids = required ? undefined : idsInPlaceOf(input);
  if (!required && (ids === undefined || hasIds(request, ids))) return undefined;
  const orIds = ids === undefined ? '' : `, or ${ids} in its place`;
  return reject('INVALID_TENSOR', `the ${input.side} tensor ${JSON.stringify(input.name)} is missing`, {
    allowed: `${input.datatype} ${JSON.stringify(input.shape)}`,
    advice: `Send it in ${fieldOf(input.side)}${orIds}.`,
  });
}

/** The field by which rows are found that were not sent; undefined where none are needed. */
function idsInPlaceOf({ byIds = false, idFrom }: InputContract): string | undefined {
  return byIds ? 'candidateIds' : idFrom;
}

function hasIds(request: RequestFields, field: string): boolean {
  return field === 'candidateIds' ? request.candidateIds !== null : entityIdOf(request, field) !== undefined;
}
