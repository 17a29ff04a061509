import * as v from 'valibot';
import { closedObject, finite, whole } from '../../core/json-values.ts';
import { ENTITY_ID_SOURCE } from '../../core/request/entity-id.ts';

const NAME_LENGTH_MAX = 256;
const FEATURES_MAX = 4_096;
const FP32_MAX = 3.4028234663852886e38;
const name = v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_LENGTH_MAX));

/** `source` of an input: where its rows are read that a request does not send (docs/feature-sources.md). */
export const sourceSchema = closedObject({
  view: name,
  entity: name,
  ids: v.picklist(['INT64', 'STRING']),
  idFrom: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(NAME_LENGTH_MAX),
      v.regex(ENTITY_ID_SOURCE, 'must be bucketKey or context.<key>'),
    ),
  ),
  features: v.pipe(v.array(name), v.minLength(1), v.maxLength(FEATURES_MAX)),
  maxAgeMs: v.optional(v.pipe(whole, v.minValue(1))),
  missing: v.picklist(['default', 'reject']),
  default: v.optional(
    v.pipe(v.array(v.pipe(finite, v.minValue(-FP32_MAX), v.maxValue(FP32_MAX))), v.maxLength(FEATURES_MAX)),
  ),
});

export type SourceConfig = v.InferOutput<typeof sourceSchema>;

interface SourcedConfig {
  name: string;
  side: 'request' | 'candidate' | 'index';
  datatype: 'FP32' | 'INT64';
  shape: readonly number[];
  axes: readonly string[];
  table?: unknown;
  source?: SourceConfig | undefined;
}

/** What is wrong with the source of an input, in sentences. */
export function sourceProblems({
  name: input,
  side,
  datatype,
  shape,
  axes,
  table,
  source,
}: SourcedConfig): string[] {
  if (source === undefined) return [];
  const problems: string[] = [];
  const say = (is: boolean, what: string): void => void (is && problems.push(`${input}: ${what}`));
  const isRow = side !== 'index' && !axes.includes('sequence');
  say(
    !isRow || datatype !== 'FP32',
    'only an FP32 input of one row a request or candidate may have a source',
  );
  say(table !== undefined, 'its rows come from a table or from a source, not from both');
  say(side === 'request' && source.idFrom === undefined, 'a source of a request input needs idFrom');
  say(
    side === 'candidate' && source.idFrom !== undefined,
    'candidates have their ids from candidateIds, not from idFrom',
  );
  const width = widthOf(shape);
  say(source.features.length > width, `${source.features.length} features do not fit into a row of ${width}`);
  const given = source.default?.length ?? width;
  say(given !== width, `the default row has ${given} values, and a row has ${width}`);
  say(
    source.default !== undefined && source.missing === 'reject',
    'default has no meaning where missing is reject',
  );
  return problems;
}

/** Values of a row: all axes but the first, which counts requests or candidates. */
export function widthOf(shape: readonly number[]): number {
  return shape.slice(1).reduce((product, size) => product * size, 1);
}
