import * as v from 'valibot';
import { MillraceError } from '../../core/errors.ts';
import { closedObject, finite, problemsIn, recordOf, whole } from '../../core/json-values.ts';
import { NAME, NAME_ALLOWED } from '../../core/policy/parse-tree.ts';
import type { AcceleratorProfile } from '../../core/profile/profile.ts';
import { parseCostModel } from '../../core/signals/cost-model.ts';

/** What goes into a policy's text: what a fleet calls it. */
const name = v.pipe(v.string(), v.regex(NAME, `must be a name: ${NAME_ALLOWED}`));
/** As the folders of a model repository. */
const family = v.pipe(
  v.string(),
  v.maxLength(128),
  v.regex(/^[a-z][a-z0-9-]*$/, 'must match [a-z][a-z0-9-]*'),
);
const line = v.pipe(v.string(), v.maxLength(500), v.regex(/^[\x20-\x7e\u00a0-\uffff]*$/, 'must be one line'));
const version = v.pipe(v.string(), v.regex(/^[1-9]\d{0,15}$/, 'must be the number of a version'));
/** No time, and no share of one, is larger: sums of them stay numbers. */
const LARGEST = 1e9;
const positive = v.pipe(finite, v.gtValue(0), v.maxValue(LARGEST));
const notNegative = v.pipe(finite, v.minValue(0), v.maxValue(LARGEST));
const share = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const count = v.pipe(whole, v.minValue(0));
const sample = closedObject({ candidates: count, rows: count, ms: positive });
const [VERSIONS_MAX, ITEMS_MAX] = [1_000, 10_000];
/** Of a file: what is measured of a version is some 10 KB. */
export const PROFILE_BYTES_MAX = 32 * 2 ** 20;

/** A list that has each of its items once. */
function each<Item extends v.GenericSchema<unknown, unknown>>(
  item: Item,
  max: number,
  nameOf: (value: v.InferOutput<Item>) => string,
) {
  return v.pipe(
    v.array(item),
    v.maxLength(max),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return;
      const names = dataset.value.map(nameOf);
      const twice = names.find((one, n) => names.indexOf(one) < n);
      if (twice !== undefined) addIssue({ message: `${twice} is there twice` });
    }),
  );
}

const target = v.pipe(
  closedObject({
    kernel: name,
    memory: name,
    features: v.pipe(v.array(v.pipe(v.string(), v.maxLength(20))), v.minLength(1), v.maxLength(20)),
    coefficients: v.pipe(v.array(notNegative), v.minLength(1), v.maxLength(20)),
    medianRelativeError: notNegative,
    p95RelativeError: notNegative,
    shapes: v.pipe(v.array(sample), v.maxLength(ITEMS_MAX)),
    heldOut: v.pipe(v.array(sample), v.maxLength(ITEMS_MAX)),
  }),
  v.check(({ coefficients }) => coefficients.some((value) => value > 0), 'predicts no time at all'),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { features, coefficients } = dataset.value;
    const message = refusalOf({ format: 1, unit: 'ms', features, coefficients });
    if (message !== undefined) addIssue({ message });
  }),
);

const batch = closedObject({
  kernel: name,
  memory: name,
  requests: count,
  candidates: count,
  ms: notNegative,
});

const sparse = closedObject({
  memory: name,
  requests: count,
  candidates: count,
  compared: v.pipe(v.array(closedObject({ zeroShare: share, ratio: notNegative })), v.maxLength(ITEMS_MAX)),
  fasterFromZeros: v.nullable(share),
  fasterBelowNonZeroShare: v.nullable(share),
});

const schema = closedObject({
  format: v.literal(1),
  accelerator: name,
  backend: name,
  simulated: v.boolean(),
  machine: line,
  software: line,
  seed: count,
  versions: each(
    closedObject({
      family,
      version,
      digest: line,
      synthetic: v.boolean(),
      typicalRows: count,
      candidatesMax: v.pipe(whole, v.minValue(1), v.maxValue(1_000_000)),
      targets: each(target, 100, ({ kernel, memory }) => `${kernel}/${memory}`),
      batches: v.pipe(v.array(batch), v.maxLength(100)),
      sparse: v.pipe(v.array(sparse), v.maxLength(100)),
      refusedKernels: recordOf(name, v.string()),
    }),
    VERSIONS_MAX,
    ({ family, version }) => `${family}@${version}`,
  ),
  failed: v.pipe(v.array(closedObject({ family, version, reason: v.string() })), v.maxLength(VERSIONS_MAX)),
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
  const parsed = v.safeParse(schema, jsonIn(file, text));
  if (parsed.success) return parsed.output;
  throw noProfile(file, problemsIn(parsed.issues));
}

function jsonIn(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw noProfile(file, 'is not JSON', cause);
  }
}

function noProfile(file: string, what: string, cause?: unknown): MillraceError {
  const advice = '`millrace profile --out` writes one.';
  return new MillraceError('INVALID_CONFIG', `${file} is no profile: ${what}`, { advice, cause });
}
