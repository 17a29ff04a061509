import * as v from 'valibot';
import { closedObject, finite, whole } from '../../core/json-values.ts';
import { FORBIDDEN_KEYS } from '../../core/own.ts';
import type { InputContract } from '../../core/request/family.ts';
import { TABLE_NAME } from '../items/manifest.ts';
import { sourceProblems, sourceSchema } from './source-config.ts';

/** A name of a family, an input, a head or a hint. */
const NAME_LENGTH_MAX = 128;
/** Feeds and hints are found by their name, and records may not have every key. */
const isKey = (name: string): boolean => !FORBIDDEN_KEYS.has(name);
const KEY_ALLOWED = 'must be none of __proto__, constructor, prototype';
const identifier = v.pipe(
  v.string(),
  v.maxLength(NAME_LENGTH_MAX),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and _, and begin with no digit'),
  v.check(isKey, KEY_ALLOWED),
);
const fileName = v.pipe(
  v.string(),
  v.maxLength(NAME_LENGTH_MAX),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be the name of a file beside the config, without folders'),
);
const count = v.pipe(whole, v.minValue(1));
/** Each stage is a call of the accelerator; rankings of more than four stages are not known to us. */
const CASCADE_MAX = 8;
const versionName = v.pipe(
  v.string(),
  v.maxLength(NAME_LENGTH_MAX),
  v.regex(/^[a-z][a-z0-9-]*@[1-9][0-9]{0,8}$/, 'must name a version, such as two-tower@1'),
);

const inputName = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(NAME_LENGTH_MAX),
  v.check(isKey, KEY_ALLOWED),
);

const inputSchema = closedObject({
  name: inputName,
  side: v.picklist(['request', 'candidate', 'index']),
  datatype: v.picklist(['FP32', 'INT64']),
  shape: v.pipe(v.array(v.pipe(whole, v.minValue(-1))), v.minLength(1)),
  axes: v.pipe(v.array(v.picklist(['request', 'sequence', 'candidate', 'feature'])), v.minLength(1)),
  optional: v.optional(v.boolean(), false),
  lengthOf: v.optional(v.string()),
  table: v.optional(
    closedObject({
      name: v.pipe(
        v.string(),
        v.regex(TABLE_NAME, 'must be lower-case letters, digits, _ and -, and begin with a letter'),
      ),
      unknown: v.picklist(['default', 'reject']),
    }),
  ),
  source: v.optional(sourceSchema),
});

const headSchema = closedObject({
  name: identifier,
  datatype: v.literal('FP32'),
  axes: v.strictTuple([v.literal('candidate')]),
  shape: v.strictTuple([v.literal(-1)]),
  probability: v.boolean(),
  meaning: v.string(),
});

type ConfigInput = v.InferOutput<typeof inputSchema>;

/** config.yaml of a model version, format 1 (models/README.md). */
export const configSchema = closedObject({
  format: v.literal(1),
  family: v.pipe(
    v.string(),
    v.maxLength(NAME_LENGTH_MAX),
    v.regex(/^[a-z][a-z0-9-]*$/, 'must match [a-z][a-z0-9-]*'),
  ),
  version: count,
  variant: v.picklist(['baseline', 'enhanced']),
  synthetic: v.boolean(),
  description: v.string(),
  model: closedObject({
    file: fileName,
    digest: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hex digits')),
    opset: count,
  }),
  inputs: v.pipe(
    v.array(inputSchema),
    v.rawCheck(({ dataset, addIssue }) => {
      if (dataset.typed) for (const message of inputProblems(dataset.value)) addIssue({ message });
    }),
  ),
  tiles: v.optional(closedObject({ candidates: inputName, requests: inputName, slots: inputName })),
  cascade: v.optional(
    v.pipe(
      v.array(closedObject({ model: versionName, keep: count })),
      v.maxLength(CASCADE_MAX),
      v.check(
        (stages) => stages.every(({ keep }, at) => at === 0 || keep <= (stages[at - 1]?.keep ?? 0)),
        'no stage may keep more than the one before it',
      ),
    ),
    [],
  ),
  heads: v.pipe(v.array(headSchema), v.minLength(1)),
  hints: v.optional(v.array(closedObject({ name: identifier, default: finite })), []),
  rankBy: v.string(),
  slaMs: v.pipe(finite, v.gtValue(0)),
  calibrationTarget: v.string(),
  limits: closedObject({ candidatesMax: count, sequenceLengthMax: count, tensorBytesMax: count }),
  golden: fileName,
  cost: fileName,
});

export type ModelConfig = v.InferOutput<typeof configSchema>;

/** What the batch planner could not pack, in sentences; none where the inputs fit together. */
function inputProblems(inputs: readonly ConfigInput[]): string[] {
  const problems: string[] = [];
  const sequences = inputs.filter((input) => input.axes.includes('sequence')).map((input) => input.name);
  const lengths = inputs.flatMap((input) => (input.lengthOf === undefined ? [] : [input.lengthOf]));
  for (const input of inputs) problems.push(...shapeProblems(input), ...sourceProblems(input));
  if (new Set(inputs.map((input) => input.name)).size < inputs.length)
    problems.push('an input is named twice');
  if (inputs.filter((input) => input.side === 'index').length !== 1) {
    problems.push('exactly one input must have side index');
  }
  if (!inputs.some((input) => input.side === 'candidate'))
    problems.push('one input must have side candidate');
  for (const length of lengths) {
    if (!sequences.includes(length)) {
      problems.push(`lengthOf ${length} names no sequence input; allowed: ${sequences.join(', ') || 'none'}`);
    }
  }
  for (const sequence of sequences) {
    const counters = lengths.filter((length) => length === sequence).length;
    if (counters !== 1)
      problems.push(`${sequence} needs exactly one input with lengthOf: ${sequence}, has ${counters}`);
  }
  return problems;
}

function shapeProblems(input: ConfigInput): string[] {
  const { name, side, datatype, axes, shape } = input;
  if (axes.length !== shape.length) return [`${name}: axes and shape differ in length`];
  const problems: string[] = [];
  const first = side === 'request' ? 'request' : 'candidate';
  if (axes[0] !== first) problems.push(`${name}: the first axis of side ${side} must be ${first}`);
  const sequence = axes[1] === 'sequence' && side === 'request';
  if (axes.slice(sequence ? 2 : 1).some((axis) => axis !== 'feature')) {
    problems.push(`${name}: axes must be [${first}${side === 'request' ? ', sequence?' : ''}, feature…]`);
  }
  axes.forEach((axis, position) => {
    const size = shape[position] ?? 0;
    if (axis === 'feature' ? size < 1 : size !== -1) {
      problems.push(
        `${name}: shape[${position}] is ${size}, must be ${axis === 'feature' ? '1 or more' : '-1'}`,
      );
    }
  });
  const made = side === 'index' || input.lengthOf !== undefined;
  if (made && (datatype !== 'INT64' || shape.length !== 1))
    problems.push(`${name}: must be INT64 with shape [-1]`);
  if (input.lengthOf !== undefined && side !== 'request')
    problems.push(`${name}: lengthOf needs side request`);
  if (input.optional && !sequence) problems.push(`${name}: only a sequence may be optional`);
  if (input.table !== undefined && (side !== 'candidate' || datatype !== 'FP32'))
    problems.push(`${name}: only a candidate input of FP32 may come from a table`);
  return problems;
}

/** The inputs as the request check and the packing see them: without the axis that counts requests. */
export function inputContracts(config: ModelConfig): InputContract[] {
  return config.inputs.map(({ name, side, datatype, shape, optional, lengthOf, table, source }) => {
    if (side === 'index') return { name, side: 'request-index', datatype, shape, required: false };
    const byIds = table !== undefined || source !== undefined;
    if (side === 'candidate') return { name, side, datatype, shape, required: !byIds, byIds };
    if (lengthOf !== undefined) {
      return { name, side: 'request-length', datatype, shape: shape.slice(1), required: false, lengthOf };
    }
    const row = { name, side, datatype, shape: shape.slice(1), required: !optional && source === undefined };
    return source?.idFrom === undefined ? row : { ...row, idFrom: source.idFrom };
  });
}
