import type { RequestFields } from './fields.ts';

/** Where a request may name the entity that it is about. */
export const ENTITY_ID_SOURCE = /^(?:bucketKey|context\.[^\s].{0,127})$/s;

const CONTEXT = 'context.';

/** @param from `bucketKey` or `context.<key>`; @returns undefined where the request does not say */
export function entityIdOf(
  { bucketKey, context }: Pick<RequestFields, 'bucketKey' | 'context'>,
  from: string,
): string | undefined {
  if (from === 'bucketKey') return bucketKey ?? undefined;
  const key = from.slice(CONTEXT.length);
  return from.startsWith(CONTEXT) && Object.hasOwn(context, key) ? context[key] : undefined;
}
