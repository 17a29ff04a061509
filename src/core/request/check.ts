import { listNames } from '../errors.ts';
import { didYouMean } from '../policy/nearest.ts';
import { checkEnvelope } from './check-envelope.ts';
import { type CheckedTensors, checkTensors } from './check-tensors.ts';
import { type FamilyContract, parseModelName } from './family.ts';
import type { RequestFields } from './fields.ts';
import { firstNonFinite } from './finite.ts';
import type { RequestLimits } from './limits.ts';
import { type Rejection, reject } from './rejection.ts';
import type { Tensor } from './tensor.ts';

/** The name by which policies test a request's region. */
export const REGION = 'region';

export interface AcceptedRequest {
  status: 'accepted';
  requestId: string;
  family: FamilyContract;
  /** The version that the request asks for; `undefined` where the policy may choose. */
  version: string | undefined;
  /** N. */
  candidateCount: number;
  /** Length of the longest sequence: as sent, else its rows; `undefined` where the family has no sequence input. */
  sequenceLength: number | undefined;
  /** Contents of all tensors, ids included. */
  tensorBytes: number;
  /** The request's deadline, else the family's SLA. */
  budgetMs: number;
  /** What rollouts bucket by; requestId where the request gave none. */
  bucketKey: string;
  /** Predicted worth; 0 where the request gave none. */
  value: number;
  /** Allow-listed context, and `region` where the request names one. */
  context: Readonly<Record<string, string>>;
  /** Context keys that were dropped. */
  contextDropped: number;
  /** The tensor of each of `family.inputs`, in that order; `undefined` where it was not sent. */
  tensors: readonly (Tensor | undefined)[];
}

export type RequestCheck = AcceptedRequest | Rejection;

/**
 * Checks a decoded request against its model family and the limits: envelope, model, tensors, candidates, in this order,
 * up to the first thing that is wrong. Reads the request side in full and of the candidate side only shapes and sizes.
 * Never throws: what is wrong comes back as a rejection with one of the codes INVALID_REQUEST, INVALID_TENSOR, NON_FINITE,
 * UNKNOWN_MODEL, LIMIT_EXCEEDED, none of which a retry can help.
 */
export function checkRequest(
  request: RequestFields,
  families: ReadonlyMap<string, FamilyContract>,
  limits: RequestLimits,
): RequestCheck {
  const refused = checkEnvelope(request, limits);
  if (refused !== undefined) return refused;
  const { family: name, version } = parseModelName(request.model);
  const family = families.get(name);
  if (family === undefined) return unknownFamily(name, families);
  if (version !== undefined && !family.versions.some((known) => known.version === version))
    return unknownVersion(version, family);
  const checked = checkTensors(request, family, limits);
  if (checked.status === 'rejected') return checked;
  return (
    checkBaseline(request.baselineCandidates, checked.candidateCount) ??
    checkCandidateValues(request.candidateValues, checked.candidateCount) ??
    accept(request, family, version, checked, limits)
  );
}

function accept(
  request: RequestFields,
  family: FamilyContract,
  version: string | undefined,
  checked: CheckedTensors,
  limits: RequestLimits,
): AcceptedRequest {
  const context = contextOf(request, limits.contextKeys);
  return {
    status: 'accepted',
    requestId: request.requestId,
    family,
    version,
    candidateCount: checked.candidateCount,
    sequenceLength: checked.sequenceLength,
    tensorBytes: checked.tensorBytes,
    budgetMs: request.deadlineMs ?? family.slaMs,
    bucketKey: request.bucketKey === null || request.bucketKey === '' ? request.requestId : request.bucketKey,
    value: request.value ?? 0,
    context,
    contextDropped: Object.keys(request.context).filter((key) => !Object.hasOwn(context, key)).length,
    tensors: checked.tensors,
  };
}

/** The texts that a policy may test: what is allow-listed, and the region under its own name. */
function contextOf(
  { context, region }: RequestFields,
  allowed: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const [key, text] of Object.entries(context)) if (allowed.has(key)) kept[key] = text;
  if (region !== null) kept[REGION] = region;
  return kept;
}

/** Publishing reaches workers only: what a request of a family must look like, the extractor (or a command that stands in for it) reads in its folder. */
const NEW_FAMILY =
  'Families are those of the model folder, whatever was published: name the repository that has it in MILLRACE_MODELS, or put a version of it there; an extractor that runs has to be restarted.';

function unknownFamily(name: string, families: ReadonlyMap<string, FamilyContract>): Rejection {
  return reject('UNKNOWN_MODEL', 'there is no such model', {
    value: name,
    allowed: listNames(families.keys(), 'none is loaded'),
    advice: [didYouMean(name, families.keys()).advice, NEW_FAMILY]
      .filter((text) => text !== undefined)
      .join(' '),
  });
}

function unknownVersion(version: string, family: FamilyContract): Rejection {
  const versions = family.versions.map((known) => known.version);
  return reject('UNKNOWN_MODEL', `model ${JSON.stringify(family.family)} has no such version`, {
    value: version,
    allowed: listNames(versions, 'none is loaded'),
    advice: `Ask for ${JSON.stringify(family.family)} to get the version that is live.`,
  });
}

function checkBaseline(baselineCandidates: number, candidateCount: number): Rejection | undefined {
  if (Number.isInteger(baselineCandidates) && baselineCandidates >= 0 && baselineCandidates <= candidateCount)
    return undefined;
  return reject('INVALID_REQUEST', 'baselineCandidates is not among the candidates', {
    value: baselineCandidates,
    allowed: `whole numbers from 0 to ${candidateCount}, the number of candidates sent`,
  });
}

function checkCandidateValues(values: Buffer | null, candidateCount: number): Rejection | undefined {
  if (values === null) return undefined;
  if (values.length !== 4 * candidateCount)
    return reject('INVALID_TENSOR', 'candidateValues does not have one value per candidate', {
      value: values,
      allowed: `${4 * candidateCount} bytes, FP32 [${candidateCount}]`,
    });
  const index = firstNonFinite(values, 'FP32');
  if (index < 0) return undefined;
  return reject('NON_FINITE', 'candidateValues holds NaN or an infinity', {
    value: `element ${index}`,
    allowed: 'finite numbers',
  });
}
