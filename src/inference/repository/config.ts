import { z } from 'zod';
import { FORBIDDEN_KEYS } from '../../core/own.ts';
import type { InputContract } from '../../core/request/family.ts';
import { TABLE_NAME } from '../items/manifest.ts';
import { sourceProblems, sourceSchema } from './source-config.ts';
import { strictObject } from './strict-object.ts';

/** A name of a family, an input, a head or a hint. */
const NAME_LENGTH_MAX = 128;
/** Feeds and hints are found by their name, and records may not have every key. */
const isKey = (name: string): boolean => !FORBIDDEN_KEYS.has(name);
const KEY_ALLOWED = 'must be none of __proto__, constructor, prototype';
const identifier = z
  .string()
  .max(NAME_LENGTH_MAX)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and _, and begin with no digit')
  .refine(isKey, KEY_ALLOWED);
const fileName = z
  .string()
  .max(NAME_LENGTH_MAX)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be the name of a file beside the config, without folders');
const count = z.int().min(1);

const inputName = z.string().min(1).max(NAME_LENGTH_MAX).refine(isKey, KEY_ALLOWED);

const inputSchema = strictObject({
  name: inputName,
  side: z.enum(['request', 'candidate', 'index']),
  datatype: z.enum(['FP32', 'INT64']),
  shape: z.array(z.int().min(-1)).min(1),
  axes: z.array(z.enum(['request', 'sequence', 'candidate', 'feature'])).min(1),
  optional: z.boolean().default(false),
  lengthOf: z.string().optional(),
  table: strictObject({
    name: z
      .string()
      .regex(TABLE_NAME, 'must be lower-case letters, digits, _ and -, and begin with a letter'),
    unknown: z.enum(['default', 'reject']),
  }).optional(),
  source: sourceSchema.optional(),
});

const headSchema = strictObject({
  name: identifier,
  datatype: z.literal('FP32'),
  axes: z.tuple([z.literal('candidate')]),
  shape: z.tuple([z.literal(-1)]),
  probability: z.boolean(),
  meaning: z.string(),
});

type ConfigInput = z.output<typeof inputSchema>;

/** config.yaml of a model version, format 1 (models/README.md). */
export const configSchema = strictObject({
  format: z.literal(1),
  family: z
    .string()
    .max(NAME_LENGTH_MAX)
    .regex(/^[a-z][a-z0-9-]*$/, 'must match [a-z][a-z0-9-]*'),
  version: count,
  variant: z.enum(['baseline', 'enhanced']),
  synthetic: z.boolean(),
  description: z.string(),
  model: strictObject({
    file: fileName,
    digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hex digits'),
    opset: count,
  }),
  inputs: z.array(inputSchema).superRefine((inputs, context) => {
    for (const problem of inputProblems(inputs)) context.addIssue({ code: 'custom', message: problem });
  }),
  tiles: strictObject({ candidates: inputName, requests: inputName, slots: inputName }).optional(),
  heads: z.array(headSchema).min(1),
  hints: z.array(strictObject({ name: identifier, default: z.number() })).default([]),
  rankBy: z.string(),
  slaMs: z.number().positive(),
  calibrationTarget: z.string(),
  limits: strictObject({ candidatesMax: count, sequenceLengthMax: count, tensorBytesMax: count }),
  golden: fileName,
  cost: fileName,
});

export type ModelConfig = z.output<typeof configSchema>;

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
