import { z } from 'zod';
import type { AcceleratorProfile } from '../../core/profile/profile.ts';
import { parseAs, readJson } from '../repository/parse-file.ts';
import { strictObject } from '../repository/strict-object.ts';

/** What goes into a policy's text as it is. */
const name = z.string().regex(/^[A-Za-z][A-Za-z0-9._-]{0,127}$/, 'must be a name');
const line = z
  .string()
  .max(500)
  .regex(/^[\x20-\x7e\u00a0-\uffff]*$/, 'must be one line');
const version = z.string().regex(/^[1-9]\d{0,8}$/, 'must be the number of a version');
const positive = z.number().positive();
const notNegative = z.number().nonnegative();
const share = z.number().min(0).max(1);
const whole = z.int().min(0);
const sample = strictObject({ candidates: whole, rows: whole, ms: positive });
const [VERSIONS_MAX, ITEMS_MAX] = [1_000, 10_000];

const target = strictObject({
  kernel: name,
  memory: name,
  features: z.array(z.string().max(20)).min(1).max(20),
  coefficients: z.array(notNegative).min(1).max(20),
  medianRelativeError: notNegative,
  p95RelativeError: notNegative,
  shapes: z.array(sample).max(ITEMS_MAX),
  heldOut: z.array(sample).max(ITEMS_MAX),
}).refine(({ coefficients }) => coefficients.some((value) => value > 0), 'predicts no time at all');

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
  versions: z
    .array(
      strictObject({
        family: name,
        version,
        digest: line,
        synthetic: z.boolean(),
        typicalRows: whole,
        candidatesMax: z.int().min(1).max(1_000_000),
        targets: z.array(target).max(100),
        batches: z.array(batch).max(100),
        sparse: z.array(sparse).max(100),
        refusedKernels: z.record(name, z.string()),
      }),
    )
    .max(VERSIONS_MAX),
  failed: z.array(strictObject({ family: name, version, reason: z.string() })).max(VERSIONS_MAX),
});

/** @throws MillraceError INVALID_MODEL with the file, the path in it and what is allowed there */
export function readProfile(file: string, text: string): AcceleratorProfile {
  return parseAs(file, schema, readJson(file, text));
}
