import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';
import { NAME, NAME_ALLOWED } from '../../core/policy/parse-tree.ts';
import type { AcceleratorProfile } from '../../core/profile/profile.ts';
import { parseCostModel } from '../../core/signals/cost-model.ts';
import { problemsIn } from '../repository/parse-file.ts';
import { strictObject } from '../repository/strict-object.ts';

/** What goes into a policy's text: what a fleet calls it. */
const name = z.string().regex(NAME, `must be a name: ${NAME_ALLOWED}`);
/** As the folders of a model repository. */
const family = z
  .string()
  .max(128)
  .regex(/^[a-z][a-z0-9-]*$/, 'must match [a-z][a-z0-9-]*');
const line = z
  .string()
  .max(500)
  .regex(/^[\x20-\x7e\u00a0-\uffff]*$/, 'must be one line');
const version = z.string().regex(/^[1-9]\d{0,15}$/, 'must be the number of a version');
/** No time, and no share of one, is larger: sums of them stay numbers. */
const LARGEST = 1e9;
const positive = z.number().positive().max(LARGEST);
const notNegative = z.number().nonnegative().max(LARGEST);
const share = z.number().min(0).max(1);
const whole = z.int().min(0);
const sample = strictObject({ candidates: whole, rows: whole, ms: positive });
const [VERSIONS_MAX, ITEMS_MAX] = [1_000, 10_000];
/** Of a file: what is measured of a version is some 10 KB. */
export const PROFILE_BYTES_MAX = 32 * 2 ** 20;

/** A list that has each of its items once. */
function each<T extends z.ZodType>(item: T, nameOf: (value: z.output<T>) => string) {
  return z.array(item).superRefine((values, context) => {
    const names = values.map(nameOf);
    const twice = names.find((one, n) => names.indexOf(one) < n);
    if (twice !== undefined) context.addIssue({ code: 'custom', message: `${twice} is there twice` });
  });
}

const target = strictObject({
  kernel: name,
  memory: name,
  features: z.array(z.string().max(20)).min(1).max(20),
  coefficients: z.array(notNegative).min(1).max(20),
  medianRelativeError: notNegative,
  p95RelativeError: notNegative,
  shapes: z.array(sample).max(ITEMS_MAX),
  heldOut: z.array(sample).max(ITEMS_MAX),
})
  .refine(({ coefficients }) => coefficients.some((value) => value > 0), 'predicts no time at all')
  .superRefine(({ features, coefficients }, context) => {
    const message = refusalOf({ format: 1, unit: 'ms', features, coefficients });
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const batch = strictObject({
  kernel: name,
  memory: name,
  requests: whole,
  candidates: whole,
  ms: notNegative,
});

const sparse = strictObject({
  memory: name,
  requests: whole,
  candidates: whole,
  compared: z.array(strictObject({ zeroShare: share, ratio: notNegative })).max(ITEMS_MAX),
  fasterFromZeros: share.nullable(),
  fasterBelowNonZeroShare: share.nullable(),
});

const schema = strictObject({
  format: z.literal(1),
  accelerator: name,
  backend: name,
  simulated: z.boolean(),
  machine: line,
  software: line,
  seed: whole,
  versions: each(
    strictObject({
      family,
      version,
      digest: line,
      synthetic: z.boolean(),
      typicalRows: whole,
      candidatesMax: z.int().min(1).max(1_000_000),
      targets: each(target, ({ kernel, memory }) => `${kernel}/${memory}`).max(100),
      batches: z.array(batch).max(100),
      sparse: z.array(sparse).max(100),
      refusedKernels: z.record(name, z.string()),
    }),
    ({ family, version }) => `${family}@${version}`,
  ).max(VERSIONS_MAX),
  failed: z.array(strictObject({ family, version, reason: z.string() })).max(VERSIONS_MAX),
});

function refusalOf(costModel: unknown): string | undefined {
  try {
    parseCostModel(costModel);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** @throws MillraceError INVALID_CONFIG with the file, the path in it and what is allowed there */
export function readProfile(file: string, text: string): AcceleratorProfile {
  const parsed = schema.safeParse(jsonIn(file, text));
  if (parsed.success) return parsed.data;
  throw noProfile(file, problemsIn(parsed.error), parsed.error);
}

function jsonIn(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw noProfile(file, 'is not JSON', cause);
  }
}

function noProfile(file: string, what: string, cause: unknown): MillraceError {
  const advice = '`millrace profile --out` writes one.';
  return new MillraceError('INVALID_CONFIG', `${file} is no profile: ${what}`, { advice, cause });
}
