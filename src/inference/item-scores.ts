import { MillraceError } from '../core/errors.ts';
import type { ItemResult, ItemTableUse } from '../ports/accelerator.ts';
import type { ModelVersion } from './repository/model-version.ts';

/**
 * An item's result from its heads' values (FP32 [count] each, in the order of the version's heads): `rankBy` makes the scores.
 * The item fails with NON_FINITE where a head, a hint or a score is no finite number.
 */
export function itemResult(
  version: ModelVersion,
  heads: readonly Float32Array[],
  hints: Readonly<Record<string, number>>,
  count: number,
  fromTables?: ItemTableUse,
): ItemResult {
  try {
    for (const [position, { name }] of version.heads.entries()) checkFinite(`head ${name}`, heads[position]);
    const scores = version.rankBy.score(heads, hints, count);
    checkFinite('rankBy', scores);
    return {
      status: 'scored',
      scores: {
        ...(fromTables === undefined ? {} : { fromTables }),
        heads: version.heads.map(({ name }, position) => ({
          name,
          values: heads[position] ?? new Float32Array(0),
        })),
        scores,
      },
    };
  } catch (error) {
    return failed(error);
  }
}

/** @throws what is no MillraceError: a fault of the program, not of an item */
export function failed(error: unknown): ItemResult {
  if (error instanceof MillraceError) return { status: 'failed', error };
  throw error;
}

export function emptyResult(version: ModelVersion): ItemResult {
  const empty = (): Float32Array => new Float32Array(0);
  return {
    status: 'scored',
    scores: { heads: version.heads.map(({ name }) => ({ name, values: empty() })), scores: empty() },
  };
}

function checkFinite(what: string, values: Float32Array | undefined): void {
  const index = values?.findIndex((value) => !Number.isFinite(value)) ?? -1;
  if (index < 0) return;
  throw new MillraceError('NON_FINITE', `${what} gives no finite number for candidate ${index}`, {
    value: values?.[index],
  });
}
