import * as v from 'valibot';
import { closedObject, recordOf, whole } from '../../core/json-values.ts';

/** No check may be so loose that it says nothing. */
const TOLERANCE_MAX = 1e-3;

const tensorSchema = v.pipe(
  closedObject({
    datatype: v.picklist(['FP32', 'INT64']),
    shape: v.array(v.pipe(whole, v.minValue(0))),
    base64: v.pipe(v.string(), v.base64()),
  }),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const { datatype, shape, base64 } = dataset.value;
    const contents = Buffer.from(base64, 'base64');
    const bytes = shape.reduce((product, size) => product * size, datatype === 'FP32' ? 4 : 8);
    if (contents.length === bytes) return { datatype, shape, contents };
    addIssue({ message: `holds ${contents.length} bytes, its shape needs ${bytes}` });
    return NEVER;
  }),
);

/** golden.json of a model version, format 1 (models/README.md): graph inputs and what any runtime must make of them. */
export const goldenSchema = closedObject({
  format: v.literal(1),
  family: v.string(),
  version: whole,
  synthetic: v.boolean(),
  /** For people: what made the cases. */
  madeBy: v.optional(v.string()),
  tolerance: closedObject({
    relative: v.pipe(v.number(), v.minValue(0), v.maxValue(TOLERANCE_MAX)),
    absolute: v.pipe(v.number(), v.minValue(0), v.maxValue(TOLERANCE_MAX)),
  }),
  cases: v.pipe(
    v.array(
      closedObject({
        name: v.string(),
        inputs: recordOf(v.string(), tensorSchema),
        outputs: recordOf(v.string(), tensorSchema),
        scores: tensorSchema,
      }),
    ),
    v.minLength(1),
  ),
});

export type Golden = v.InferOutput<typeof goldenSchema>;
export type GoldenCase = Golden['cases'][number];
export type GoldenTensor = v.InferOutput<typeof tensorSchema>;
