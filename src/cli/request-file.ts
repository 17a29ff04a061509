import { z } from 'zod';
import type { RequestInput } from '../client/client.ts';
import { fp32, int64, text } from '../client/tensors.ts';
import { readUserFile } from '../config/user-file.ts';
import type { Tensor } from '../contracts/records.ts';
import type { MillraceError } from '../core/errors.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import { notJson } from './not-json.ts';
import { fileProblem, pathText, readTensors } from './request-tensors.ts';

const texts = z.record(z.string(), z.string());
const tensors = z.record(z.string(), z.unknown());

/** The fields of a request file; each description says what is allowed. */
const SCHEMA = z.strictObject({
  about: z.string().optional().describe('a text for whoever reads the file'),
  requestId: z.string().min(1).optional().describe('a text of at most 128 bytes; a fresh one where absent'),
  model: z.string().min(1).describe('a model family such as "ranker", or family@version'),
  deadlineMs: z
    .int()
    .positive()
    .optional()
    .describe('whole milliseconds above 0; the SLA of the family where absent'),
  priority: z.int().min(0).max(9).optional().describe('whole numbers from 0 (highest) to 9'),
  value: z.number().optional().describe('a number'),
  candidateValues: z.array(z.number()).optional().describe('a list of numbers, one per candidate'),
  bucketKey: z.string().optional().describe('a text'),
  region: z.string().optional().describe('a text'),
  baselineCandidates: z
    .int()
    .min(0)
    .optional()
    .describe('whole numbers up to the number of candidates; all of them where absent'),
  candidateIds: z
    .union([z.array(z.int()), z.array(z.string())])
    .optional()
    .describe('a list of whole numbers below 2^53, or a list of texts; one per candidate'),
  requestTensors: tensors.optional().describe('tensors by the name of their model input'),
  candidateTensors: tensors.optional().describe('tensors by the name of their model input'),
  hints: z.record(z.string(), z.number()).optional().describe('numbers by name'),
  context: texts.optional().describe('texts by name'),
  experiments: texts.optional().describe('texts by name'),
  optOut: z
    .array(z.enum(['RMA', 'SBM', 'EXPLORE']))
    .optional()
    .describe('a list of RMA, SBM, EXPLORE'),
  pin: z.string().optional().describe('a policy or a variant'),
  featuresAsOf: z.int().optional().describe('milliseconds since the epoch'),
  explain: z.boolean().optional().describe('true, false'),
});

type FileFields = z.infer<typeof SCHEMA>;

/**
 * A request as a person writes it: JSON, tensors as nested arrays of numbers.
 * @throws MillraceError INVALID_CONFIG where there is no such file, INVALID_REQUEST naming the path, the value and what is allowed
 */
export function readRequestFile(file: string): RequestInput {
  return parseRequest(parseJson(readUserFile(file).toString('utf8'), file), file);
}

/** @param file names the request in messages */
export function parseRequest(content: unknown, file: string): RequestInput {
  const parsed = SCHEMA.safeParse(content);
  if (!parsed.success) throw refusal(file, content, parsed.error);
  const fields = parsed.data;
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

/** The first thing that is wrong, and how many more things are. */
function refusal(file: string, content: unknown, error: z.ZodError): MillraceError {
  const [issue] = error.issues;
  if (issue === undefined) throw new Error('zod refused a request file without an issue', { cause: error });
  if (issue.code === 'unrecognized_keys') return unknownField(file, issue.keys[0] ?? '');
  const more = error.issues.length - 1;
  const [field] = issue.path;
  if (field === undefined)
    return fileProblem(file, '', 'a request is a JSON object', { value: content, allowed: allFields() });
  const isMissing = issue.path.length === 1 && valueAt(content, issue.path) === undefined;
  const allowed = isField(field) ? SCHEMA.shape[field].description : undefined;
  return fileProblem(
    file,
    pathText(issue.path),
    `${isMissing ? 'it is missing' : 'this is not allowed here'}${more > 0 ? ` (and ${more} more)` : ''}`,
    {
      ...(isMissing ? {} : { value: valueAt(content, issue.path) }),
      ...(allowed === undefined ? {} : { allowed }),
    },
  );
}

function unknownField(file: string, name: string): MillraceError {
  const near = didYouMean(name, Object.keys(SCHEMA.shape));
  return fileProblem(
    file,
    name,
    'a request has no such field',
    near.advice === undefined ? { allowed: allFields() } : near,
  );
}

function allFields(): string {
  return Object.keys(SCHEMA.shape).join(', ');
}

function isField(name: PropertyKey): name is keyof FileFields {
  return Object.hasOwn(SCHEMA.shape, name);
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let at = root;
  for (const part of path)
    at = typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined;
  return at;
}
