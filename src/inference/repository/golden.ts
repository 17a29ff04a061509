import { z } from 'zod';
import { strictObject } from './strict-object.ts';

/** No check may be so loose that it says nothing. */
const TOLERANCE_MAX = 1e-3;

const tensorSchema = strictObject({
  datatype: z.enum(['FP32', 'INT64']),
  shape: z.array(z.int().min(0)),
  base64: z.base64(),
}).transform(({ datatype, shape, base64 }, context) => {
  const contents = Buffer.from(base64, 'base64');
  const bytes = shape.reduce((product, size) => product * size, datatype === 'FP32' ? 4 : 8);
  if (contents.length !== bytes) {
    context.addIssue({ code: 'custom', message: `holds ${contents.length} bytes, its shape needs ${bytes}` });
  }
  return { datatype, shape, contents };
});

/** golden.json of a model version, format 1 (models/README.md): graph inputs and what any runtime must make of them. */
export const goldenSchema = strictObject({
  format: z.literal(1),
  family: z.string(),
  version: z.int(),
  synthetic: z.boolean(),
  /** For people: what made the cases. */
  madeBy: z.string().optional(),
  tolerance: strictObject({
    relative: z.number().min(0).max(TOLERANCE_MAX),
    absolute: z.number().min(0).max(TOLERANCE_MAX),
  }),
  cases: z
    .array(
      strictObject({
        name: z.string(),
        inputs: z.record(z.string(), tensorSchema),
        outputs: z.record(z.string(), tensorSchema),
        scores: tensorSchema,
      }),
    )
    .min(1),
});

export type Golden = z.output<typeof goldenSchema>;
export type GoldenCase = Golden['cases'][number];
export type GoldenTensor = z.output<typeof tensorSchema>;
