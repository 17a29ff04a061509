import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkKeyId, checkScopePattern, parseKeyFile, readKeyFile } from '../../../src/config/key-file.ts';
import { toSpki } from '../../../src/core/control/spki.ts';
import { MillraceError } from '../../../src/core/errors.ts';

const RAW = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex');
const SPKI = Buffer.from(toSpki(RAW)).toString('base64');

const parse = (text: string) => parseKeyFile(text, 'keys.yaml');
const one = (fields: string): string =>
  `keys:\n  - {keyId: ana, role: person, publicKey: "${SPKI}", scopes: [policy/*]${fields}}\n`;

describe('a key file', () => {
  it('names who may sign what, and when', () => {
    const ring = parse(`
keys:
  - {keyId: ana-2026, role: person, person: ana, publicKey: ${SPKI}, scopes: [policy/*, keys]}
  - keyId: tuner
    role: controller
    publicKey: ${RAW.toString('base64')}
    scopes: ["*"]
    installation: prod-eu
    notBefore: "2026-01-01T00:00:00Z"
    notAfter: "2027-01-01T00:00:00+01:00"
`);
    expect([...ring.values()]).toEqual([
      {
        keyId: 'ana-2026',
        role: 'person',
        person: 'ana',
        publicKey: new Uint8Array(RAW),
        scopes: ['policy/*', 'keys'],
        installation: undefined,
        notBefore: undefined,
        notAfter: undefined,
      },
      {
        keyId: 'tuner',
        role: 'controller',
        person: undefined,
        publicKey: new Uint8Array(RAW),
        scopes: ['*'],
        installation: 'prod-eu',
        notBefore: Date.UTC(2026, 0, 1),
        notAfter: Date.UTC(2026, 11, 31, 23),
      },
    ]);
  });

  it('takes a PEM, and JSON', () => {
    const { publicKey } = generateKeyPairSync('ed25519');
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(12);
    const text = JSON.stringify({ keys: [{ keyId: 'a', role: 'person', publicKey: pem, scopes: ['*'] }] });
    expect(Buffer.from(parse(text).get('a')?.publicKey ?? [])).toEqual(raw);
  });

  it.each([
    ['', /keys\.yaml is not a key file \(allowed: a mapping with a list of keys/],
    ['keys: []', /is not a key file/],
    ['keys: {', /is neither YAML nor JSON/],
    ['keys: [ana]', /keys\[0\]: this is no key \(got "ana"; allowed: a mapping with keyId, role/],
    [one(', person: "a b"'), /keys\[0\]\.person: .*got "a b".*whose key it is/],
    [one(', installation: "a b"'), /keys\[0\]\.installation: .*got "a b".*the name of an installation/],
    [one(', rol: x'), /keys\[0\]\.rol: a key has no such field .*Did you mean "role"\?/],
    [
      one('').replace('ana', 'a b'),
      /keys\[0\]\.keyId: this is not allowed here \(got "a b"; allowed: letters, digits/,
    ],
    [
      one('').replace('person', 'admin'),
      /keys\[0\]\.role: .*got "admin"; allowed: person \(signs everything/,
    ],
    [one('').replace('role: person, ', ''), /keys\[0\]\.role: it is missing \(allowed: person/],
    [one('').replace('[policy/*]', '[]'), /keys\[0\]\.scopes: .*a list of at least one scope/],
    [one('').replace('[policy/*]', '["a*b"]'), /keys\[0\]\.scopes\.0: .*got "a\*b"/],
    [one(', notAfter: 2027-01-01'), /keys\[0\]\.notAfter: .*a time with its zone, in quotes/],
    [
      one('').replace(SPKI, 'AAAA'),
      /keys\[0\]\.publicKey: this is no ed25519 public key \(got "AAAA"; allowed: .*its 32 bytes/,
    ],
    [one('').replace(SPKI, SPKI.replace('MCowBQYDK2Vw', 'MCowBQYDK2Vu')), /this is no ed25519 public key/],
    [one('') + one('').replace('keys:\n', ''), /keys\[1\]\.keyId: the same id twice \(got "ana"\)/],
    [
      one('').replace(SPKI, '-----BEGIN PRIVATE KEY-----'),
      /holds a private key \(allowed: public keys only\)/,
    ],
  ])('%j is refused with what is allowed', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  it('tells everything that is wrong at once', () => {
    const text = one('').replace('person', 'admin') + one('').replace('keys:\n', '').replace(SPKI, 'AAAA');
    expect(() => parse(text)).toThrow(/keys\[0\]\.role: .*; keys\[1\]\.publicKey: /);
  });

  it('is read or refused in words, whatever it holds', () => {
    const field = fc.oneof(fc.string(), fc.constantFrom('keyId', 'role', 'publicKey', 'scopes', '__proto__'));
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<fc.JsonValue>('person', SPKI, ['policy/*'], 'ana'),
    );
    const entry = fc.dictionary(field, value);
    const file = fc.oneof(
      fc.string(),
      fc.json(),
      fc.record({ keys: fc.array(entry) }).map((keys) => JSON.stringify(keys)),
    );
    fc.assert(
      fc.property(file, (text) => {
        try {
          for (const { publicKey } of parse(text).values()) expect(publicKey).toHaveLength(32);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
    );
  });

  it('that is not there is named', () => {
    expect(() => readKeyFile('/no/such.yaml')).toThrow(
      /the key file cannot be read: there is none of this name.*"\/no\/such\.yaml"/,
    );
  });
});

it.each(['', 'a/b', '.a', 'a\nb', 'x'.repeat(65)])('%j is no id of a key', (keyId) => {
  expect(() => checkKeyId(keyId)).toThrow(/not an id of a key.*at most 64/);
});

it.each(['', 'policy/**', 'a b', '/x'])('%j is no scope', (scope) => {
  expect(() => checkScopePattern(scope)).toThrow(/not a scope.*policy\/\*/);
});
