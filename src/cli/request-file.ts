import * as v from 'valibot';
import type { RequestInput } from '../client/client.ts';
import { fp32, int64, text } from '../client/tensors.ts';
import { readUserFile } from '../config/user-file.ts';
import type { Tensor } from '../contracts/records.ts';
import type { MillraceError } from '../core/errors.ts';
import { closedObject, finite, isUnknownKey, keysOf, recordOf, whole } from '../core/json-values.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import { notJson } from './not-json.ts';
import { fileProblem, pathText, readTensors } from './request-tensors.ts';

const texts = recordOf(v.string(), v.string());
const tensors = recordOf(v.string(), v.unknown());

/** The fields of a request file; each description says what is allowed. */
const FIELDS = {
  about: v.pipe(v.optional(v.string()), v.description('a text for whoever reads the file')),
  requestId: v.pipe(
    v.optional(v.pipe(v.string(), v.minLength(1))),
    v.description('a text of at most 128 bytes; a fresh one where absent'),
  ),
  model: v.pipe(
    v.string(),
    v.minLength(1),
    v.description('a model family such as "ranker", or family@version'),
  ),
  deadlineMs: v.pipe(
    v.optional(v.pipe(whole, v.gtValue(0))),
    v.description('whole milliseconds above 0; the SLA of the family where absent'),
  ),
  priority: v.pipe(
    v.optional(v.pipe(whole, v.minValue(0), v.maxValue(9))),
    v.description('whole numbers from 0 (highest) to 9'),
  ),
  value: v.pipe(v.optional(finite), v.description('a number')),
  candidateValues: v.pipe(v.optional(v.array(finite)), v.description('a list of numbers, one per candidate')),
  bucketKey: v.pipe(v.optional(v.string()), v.description('a text')),
  region: v.pipe(v.optional(v.string()), v.description('a text')),
  baselineCandidates: v.pipe(
    v.optional(v.pipe(whole, v.minValue(0))),
    v.description('whole numbers up to the number of candidates; all of them where absent'),
  ),
  candidateIds: v.pipe(
    v.optional(v.union([v.array(whole), v.array(v.string())])),
    v.description('a list of whole numbers below 2^53, or a list of texts; one per candidate'),
  ),
  requestTensors: v.pipe(v.optional(tensors), v.description('tensors by the name of their model input')),
  candidateTensors: v.pipe(v.optional(tensors), v.description('tensors by the name of their model input')),
  hints: v.pipe(v.optional(recordOf(v.string(), finite)), v.description('numbers by name')),
  context: v.pipe(v.optional(texts), v.description('texts by name')),
  experiments: v.pipe(v.optional(texts), v.description('texts by name')),
  optOut: v.pipe(
    v.optional(v.array(v.picklist(['RMA', 'SBM', 'EXPLORE']))),
    v.description('a list of RMA, SBM, EXPLORE'),
  ),
  pin: v.pipe(v.optional(v.string()), v.description('a policy or a variant')),
  featuresAsOf: v.pipe(v.optional(whole), v.description('milliseconds since the epoch')),
  explain: v.pipe(v.optional(v.boolean()), v.description('true, false')),
};
const SCHEMA = closedObject(FIELDS);

type FileFields = v.InferOutput<typeof SCHEMA>;

/**
 * A request as a person writes it: JSON, tensors as nested arrays of numbers.
 * @throws MillraceError INVALID_CONFIG where there is no such file, INVALID_REQUEST naming the path, the value and what is allowed
 */
export function readRequestFile(file: string): RequestInput {
  return parseRequest(parseJson(readUserFile(file).toString('utf8'), file), file);
}

/** @param file names the request in messages */
export function parseRequest(content: unknown, file: string): RequestInput {
  const parsed = v.safeParse(SCHEMA, content);
  if (!parsed.success) throw refusal(file, content, parsed.issues);
  const fields = parsed.output;
  const requestTensors = readTensors(file, 'requestTensors', fields.requestTensors ?? {});
  const candidateTensors = readTensors(file, 'candidateTensors', fields.candidateTensors ?? {});
  const candidates = candidateTensors[0]?.shape[0] ?? fields.candidateIds?.length ?? 0;
  return toInput(fields, { requestTensors, candidateTensors, candidates });
}

function toInput(
  fields: FileFields,
  read: { requestTensors: Tensor[]; candidateTensors: Tensor[]; candidates: number },
): RequestInput {
  const { about: _, requestId, candidateIds, candidateValues, baselineCandidates, ...rest } = fields;
  return {
    ...rest,
    ...(requestId === undefined ? {} : { requestId }),
    baselineCandidates: baselineCandidates ?? read.candidates,
    candidateIds: candidateIds === undefined ? undefined : idTensor(candidateIds),
    candidateValues:
      candidateValues === undefined
        ? undefined
        : fp32('candidateValues', [candidateValues.length], candidateValues).contents,
    requestTensors: read.requestTensors,
    candidateTensors: read.candidateTensors,
  };
}

function idTensor(ids: readonly number[] | readonly string[]): Tensor {
  const isText = (id: number | string): id is string => typeof id === 'string';
  const asTexts = ids.filter(isText);
  return asTexts.length > 0
    ? text('candidate_ids', asTexts)
    : int64(
        'candidate_ids',
        ids.filter((id) => !isText(id)),
      );
}

function parseJson(content: string, file: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw notJson(
      'INVALID_REQUEST',
      { file, text: content, cause: error },
      {
        allowed: 'a request, such as examples/requests/ranker.json holds',
        advice: 'Correct the file, or name one that holds a request',
      },
    );
  }
}

type Issues = readonly [v.BaseIssue<unknown>, ...v.BaseIssue<unknown>[]];

/** The first thing that is wrong, and how many more things are. */
function refusal(file: string, content: unknown, issues: Issues): MillraceError {
  const [issue] = issues;
  const keys = keysOf(issue);
  const [field] = keys;
  if (isUnknownKey(issue)) return unknownField(file, String(field));
  const more = issues.length - 1;
  if (field === undefined)
    return fileProblem(file, '', 'a request is a JSON object', { value: content, allowed: allFields() });
  const isMissing = keys.length === 1 && valueAt(content, keys) === undefined;
  const allowed = isField(field) ? v.getDescription(FIELDS[field]) : undefined;
  return fileProblem(
    file,
    pathText(keys),
    `${isMissing ? 'it is missing' : 'this is not allowed here'}${more > 0 ? ` (and ${more} more)` : ''}`,
    {
      ...(isMissing ? {} : { value: valueAt(content, keys) }),
      ...(allowed === undefined ? {} : { allowed }),
    },
  );
}

function unknownField(file: string, name: string): MillraceError {
  const near = didYouMean(name, Object.keys(FIELDS));
  return fileProblem(
    file,
    name,
    'a request has no such field',
    near.advice === undefined ? { allowed: allFields() } : near,
  );
}

function allFields(): string {
  return Object.keys(FIELDS).join(', ');
}

function isField(name: PropertyKey): name is keyof FileFields {
  return Object.hasOwn(FIELDS, name);
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let at = root;
  for (const part of path)
    at = typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined;
  return at;
}
