import type { SourcedInput } from '../../ports/feature-source.ts';
import type { ModelConfig } from './config.ts';
import { widthOf } from './source-config.ts';

/** What the worker has to know of an input to read its rows; undefined where it has no source. */
export function sourcedInput({
  name,
  side,
  shape,
  source,
}: ModelConfig['inputs'][number]): SourcedInput | undefined {
  if (source === undefined || side === 'index') return undefined;
  const { view, entity: joinKey, features, maxAgeMs, ids, idFrom, missing, default: values } = source;
  const width = widthOf(shape);
  return {
    input: name,
    side,
    rowShape: shape.slice(1),
    of: { view, joinKey, features, width, maxAgeMs },
    ids,
    idFrom: idFrom ?? 'candidateIds',
    missing,
    defaultRow: Float32Array.from(values ?? new Float32Array(width)),
  };
}
