import * as v from 'valibot';
import { MillraceError } from '../../core/errors.ts';
import { checked, whole } from '../../core/json-values.ts';
import { COUNT_MAX, LEASE_MS_MAX, type PolicyPointer } from '../../ports/control-store.ts';

const count = v.pipe(whole, v.minValue(0), v.maxValue(COUNT_MAX));
/** Loose, so that fields of a newer controller pass through an older reader. */
const refSchema = v.looseObject({ digest: v.string(), name: v.string(), version: count });
const pointerSchema = v.looseObject({
  epoch: count,
  term: count,
  stable: refSchema,
  canary: v.optional(
    v.looseObject({
      policy: refSchema,
      mode: v.picklist(['shadow', 'canary']),
      percent: v.pipe(v.number(), v.minValue(0), v.maxValue(100)),
      salt: v.string(),
      unit: v.picklist(['bucketKey', 'requestId']),
      leaseMs: v.pipe(v.number(), v.gtValue(0), v.maxValue(LEASE_MS_MAX)),
      beat: count,
    }),
  ),
});

/** @throws MillraceError MALFORMED. A pointer of before there were canaries has none. */
export function parsePointer(text: string): PolicyPointer {
  try {
    const pointer = checked('the pointer', pointerSchema, JSON.parse(text));
    return { ...pointer, canary: pointer.canary };
  } catch (cause) {
    throw new MillraceError('MALFORMED', 'The pointer in Redis cannot be read', {
      value: text,
      advice: 'Let the controller seed Redis again from the control log.',
      cause,
    });
  }
}

/** undefined for what `parsePointer` refuses. */
export function readablePointer(text: string): PolicyPointer | undefined {
  try {
    return parsePointer(text);
  } catch {
    return undefined;
  }
}

/** The same text for pointers that differ in nothing but the term and the beat of their canary, whatever the order of their fields. */
export function meaningOf(pointer: PolicyPointer): string {
  const { canary } = pointer;
  return JSON.stringify(
    { ...pointer, term: undefined, canary: canary && { ...canary, beat: undefined } },
    sortedFields,
  );
}

function sortedFields(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
