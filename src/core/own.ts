/** Names that reach an object's prototype where someone copies them carelessly: no document has them as keys, no record as keys of its maps. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** What the record itself has by a free name; `record[name]` would also find what every object has, for a leaf called `constructor`. */
export function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
