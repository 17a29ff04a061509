import * as v from 'valibot';
import { parse as parseYaml } from 'yaml';
import { type ControlKey, coversAnyCommand, KEY_ROLES, type KeyRing } from '../core/control/key-ring.ts';
import { fromSpki, PUBLIC_KEY_BYTES } from '../core/control/spki.ts';
import { MillraceError, shorten } from '../core/errors.ts';
import { closedObject, isUnknownKey, keysOf, timeWithZone } from '../core/json-values.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import { readUserFile } from './user-file.ts';

const KEY_ID = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
export const KEY_ID_ALLOWED = 'letters, digits, ".", "_", "@", "-"; at most 64, a letter or digit first';
const SCOPE = /^(\*|[A-Za-z0-9][A-Za-z0-9._/-]{0,127}\*?)$/;
const SCOPE_ALLOWED =
  'a scope that commands have: policy/<name>, model/<family>, keys; policy/* and model/* for all that begin so, * for everything';

const INSTALLATION = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const INSTALLATION_ALLOWED =
  'the name of an installation: letters, digits, ".", "_", "-"; at most 64, a letter or digit first';

const time = v.pipe(
  v.optional(timeWithZone),
  v.description('a time with its zone, in quotes, such as "2027-01-31T00:00:00Z"'),
);

/** The fields of a key; each description says what is allowed. */
const FIELDS = {
  keyId: v.pipe(v.string(), v.regex(KEY_ID), v.description(KEY_ID_ALLOWED)),
  role: v.pipe(
    v.picklist(KEY_ROLES),
    v.description('person (signs everything in its scopes), controller (rollout steps and tuning)'),
  ),
  person: v.pipe(
    v.optional(v.pipe(v.string(), v.regex(KEY_ID))),
    v.description(`whose key it is, where they have several: a name of ${KEY_ID_ALLOWED}`),
  ),
  publicKey: v.pipe(
    v.string(),
    v.description(
      'an ed25519 public key in base64: its 32 bytes, or its SubjectPublicKeyInfo (DER); or its PEM',
    ),
  ),
  scopes: v.pipe(
    v.array(v.pipe(v.string(), v.check(isScopePattern))),
    v.minLength(1),
    v.description(`a list of at least one scope, each ${SCOPE_ALLOWED}`),
  ),
  installation: v.pipe(
    v.optional(v.pipe(v.string(), v.regex(INSTALLATION))),
    v.description(INSTALLATION_ALLOWED),
  ),
  notBefore: time,
  notAfter: time,
};
const KEY = closedObject(FIELDS);
const FILE = closedObject({ keys: v.pipe(v.array(v.unknown()), v.minLength(1)) });

const SHAPE =
  'a mapping with a list of keys: `keys: [{keyId: ana, role: person, publicKey: …, scopes: [policy/*]}]`';

/** A key's id, as files and flags may name it. @throws MillraceError INVALID_CONFIG */
export function checkKeyId(keyId: string): string {
  if (KEY_ID.test(keyId)) return keyId;
  throw new MillraceError('INVALID_CONFIG', 'that is not an id of a key', {
    value: keyId,
    allowed: KEY_ID_ALLOWED,
  });
}

/** The name of an installation, as key files and signers have it. @throws MillraceError INVALID_CONFIG */
export function checkInstallation(name: string): string {
  if (INSTALLATION.test(name)) return name;
  throw new MillraceError('INVALID_CONFIG', 'that is no name of an installation', {
    value: name,
    allowed: INSTALLATION_ALLOWED,
  });
}

/** A scope, or a pattern of scopes, as keys have them. @throws MillraceError INVALID_CONFIG */
export function checkScopePattern(pattern: string): string {
  if (isScopePattern(pattern)) return pattern;
  throw new MillraceError('INVALID_CONFIG', 'that is not a scope of commands', {
    value: pattern,
    allowed: SCOPE_ALLOWED,
  });
}

/** A key whose scope no command has would look as if it could sign. */
function isScopePattern(pattern: string): boolean {
  return SCOPE.test(pattern) && coversAnyCommand(pattern);
}

/** The keys of a file. @throws MillraceError INVALID_CONFIG, as `parseKeyFile` does, or where the file cannot be read */
export function readKeyFile(file: string): KeyRing {
  return parseKeyFile(readUserFile(file, 'the key file').toString('utf8'), file);
}

/**
 * The public keys that may sign commands, from YAML or JSON.
 *
 * @param file names the text in messages
 * @throws MillraceError INVALID_CONFIG naming everything that is wrong: which key, which field, the value, and what is allowed
 */
export function parseKeyFile(text: string, file: string): KeyRing {
  if (text.includes('PRIVATE KEY'))
    throw new MillraceError('INVALID_CONFIG', `${file} holds a private key`, {
      allowed: 'public keys only',
      advice:
        'Take it out, and treat it as known to whoever can read the file. `millrace policy keygen` prints the entry that belongs here',
    });
  const parsed = v.safeParse(FILE, parseText(text, file));
  if (!parsed.success)
    throw new MillraceError('INVALID_CONFIG', `${file} is not a key file`, { allowed: SHAPE });
  const problems: string[] = [];
  const ring = new Map<string, ControlKey>();
  for (const [index, entry] of parsed.output.keys.entries()) {
    const key = readKey(entry, `keys[${index}]`, problems);
    if (key === undefined) continue;
    if (ring.has(key.keyId))
      problems.push(`keys[${index}].keyId: the same id twice (got ${shorten(key.keyId)})`);
    ring.set(key.keyId, key);
  }
  if (problems.length === 0) return ring;
  throw new MillraceError('INVALID_CONFIG', `${file}: ${problems.join('; ')}`, {
    advice: '`millrace policy keygen` makes a pair, and prints its entry',
  });
}

function parseText(text: string, file: string): unknown {
  try {
    return parseYaml(text, { maxAliasCount: 0, logLevel: 'error' });
  } catch (error) {
    const [line = ''] = String(error).split('\n');
    throw new MillraceError('INVALID_CONFIG', `${file} is neither YAML nor JSON: ${line}`, {
      allowed: SHAPE,
      cause: error,
    });
  }
}

function readKey(entry: unknown, path: string, problems: string[]): ControlKey | undefined {
  const parsed = v.safeParse(KEY, entry);
  if (!parsed.success) {
    problems.push(...parsed.issues.map((issue) => describeIssue(issue, entry, path)));
    return undefined;
  }
  const { publicKey: written, person, installation, notBefore, notAfter, ...rest } = parsed.output;
  const publicKey = readPublicKey(written);
  if (publicKey === undefined) {
    problems.push(
      `${path}.publicKey: this is no ed25519 public key (got ${shorten(written)}; allowed: ${allowedOf('publicKey')})`,
    );
    return undefined;
  }
  const times = { notBefore: timeOf(notBefore), notAfter: timeOf(notAfter) };
  return { ...rest, person, publicKey, installation, ...times };
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

function describeIssue(issue: v.BaseIssue<unknown>, entry: unknown, path: string): string {
  const fields = Object.keys(FIELDS);
  const keys = keysOf(issue);
  if (isUnknownKey(issue)) {
    const name = keys.join('.');
    const advice = didYouMean(name, fields).advice;
    return `${path}.${name}: a key has no such field (allowed: ${fields.join(', ')})${advice === undefined ? '' : `. ${advice}`}`;
  }
  const [field] = keys;
  if (field === undefined || !isField(field))
    return `${path}: this is no key (got ${shorten(entry)}; allowed: a mapping with ${fields.join(', ')})`;
  const value = valueAt(entry, keys);
  const what = value === undefined ? 'it is missing' : `this is not allowed here (got ${shorten(value)})`;
  return `${path}.${keys.join('.')}: ${what} (allowed: ${allowedOf(field)})`.replace(') (', '; ');
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let at = root;
  for (const part of path)
    at = typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined;
  return at;
}

function isField(name: PropertyKey): name is keyof typeof FIELDS {
  return Object.hasOwn(FIELDS, name);
}

function allowedOf(field: keyof typeof FIELDS): string {
  return v.getDescription(FIELDS[field]) ?? '';
}

/** 32 bytes, from base64 of them, base64 of their SPKI, or PEM. */
function readPublicKey(written: string): Uint8Array | undefined {
  const base64 = written.replaceAll(/-----(BEGIN|END) PUBLIC KEY-----/g, '').replaceAll(/\s/g, '');
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64)) return undefined;
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.byteLength === PUBLIC_KEY_BYTES) return new Uint8Array(bytes);
  return fromSpki(bytes);
}
