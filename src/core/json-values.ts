import * as v from 'valibot';
import { listNames, MillraceError, shorten } from './errors.ts';
import { FORBIDDEN_KEYS, own } from './own.ts';

/** Schemas of what JSON and YAML hold, where those of the library take more or say less. */

/** JSON has no text for infinity, but 1e999 is read as one. */
export const finite = v.pipe(v.number(), v.finite(sayingNot('must be a finite number')));

/** A larger one may already have lost digits when it was read. */
export const whole = v.pipe(v.number(), v.safeInteger(sayingNot('must be a whole number below 2^53')));

/** The library takes a list for an object, and one without required fields would pass. */
export const mapping = v.pipe(
  v.unknown(),
  v.check(isMapping, sayingNot('must be an object with named fields')),
);

/** An object with these keys and no other; the complaint names all that are unknown, and those that are known. */
export function closedObject<const Entries extends v.ObjectEntries>(entries: Entries) {
  // The value is an object by then, so a key is too many or missing.
  const message = (issue: v.StrictObjectIssue): string =>
    isUnknownKey(issue)
      ? `unknown key ${listNames(unknownKeys(issue, entries))}; allowed: ${Object.keys(entries).join(', ')}`
      : `it is missing${expectedAt(issue, entries)}`;
  return v.pipe(mapping, v.strictObject(entries, message));
}

/** What the library knows of it: of what has no type of its own, nothing. */
function expectedAt(issue: Issue, entries: v.ObjectEntries): string {
  const expected = own(entries, String(keysOf(issue).at(-1)))?.expects;
  return expected === undefined || expected === 'unknown' ? '' : `, expected ${expected}`;
}

function sayingNot(rule: string): (issue: Issue) => string {
  return ({ received }) => `${rule}, not ${received}`;
}

/** An object of any names. Those that the library would drop without a word, and no record may have, are refused. */
export function recordOf<
  Key extends v.GenericSchema<string, string>,
  Value extends v.GenericSchema<unknown, unknown>,
>(key: Key, value: Value) {
  const record: v.RecordSchema<Key, Value, undefined> = v.record(key, value);
  return v.pipe(mapping, v.check(hasFreeKeys, `must have none of the keys ${KEYS_TAKEN}`), record);
}

const KEYS_TAKEN = [...FORBIDDEN_KEYS].join(', ');

const TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** ISO 8601 with its zone. The library's takes a 30th of February, which is then read as another day. */
export const timeWithZone = v.pipe(
  v.string(),
  v.check(
    (text) => TIME.test(text) && isDay(text.slice(0, 10)),
    'must be a time with its zone, such as 2027-01-31T00:00:00Z',
  ),
);

function isDay(text: string): boolean {
  return new Date(text).toJSON()?.startsWith(text) === true;
}

function isMapping(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasFreeKeys(value: unknown): boolean {
  return Object.keys(value ?? {}).every((key) => !FORBIDDEN_KEYS.has(key));
}

type Issue = v.BaseIssue<unknown>;

/** Whether a closed object refused a key; its path ends in the first such key. */
export function isUnknownKey({ type, expected }: Pick<Issue, 'type' | 'expected'>): boolean {
  return type === 'strict_object' && expected === 'never';
}

function unknownKeys({ path }: Issue, known: object): string[] {
  return Object.keys(path?.at(-1)?.input ?? {}).filter((key) => !Object.hasOwn(known, key));
}

/** Where in the value an issue is. */
export function keysOf({ path }: Issue): readonly (string | number)[] {
  return (path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)));
}

/** `inputs[2].shape: what is wrong`, one line. A key too many is a problem of the object that has it. */
export function problemOf(issue: Issue): string {
  const keys = isUnknownKey(issue) ? keysOf(issue).slice(0, -1) : keysOf(issue);
  const path = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`));
  const where = path.join('').replace(/^\./, '');
  return where === '' ? messageOf(issue) : `${where}: ${messageOf(issue)}`;
}

/** The library quotes a text in full, however long it is and whatever it does to a terminal. */
function messageOf({ message, received, input }: Issue): string {
  const isQuoted = typeof input === 'string' && message.endsWith(received);
  return isQuoted ? message.slice(0, -received.length) + shorten(input) : message;
}

export function problemsIn(issues: readonly Issue[]): string {
  return issues.map(problemOf).join('; ');
}

/**
 * The value as the schema has it.
 * @param what names it in the message
 * @throws MillraceError MALFORMED naming everything that is wrong, each with its path
 */
export function checked<Schema extends v.GenericSchema<unknown, unknown>>(
  what: string,
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw new MillraceError('MALFORMED', `${what}: ${problemsIn(parsed.issues)}`);
}
