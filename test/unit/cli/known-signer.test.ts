import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { CliContext } from '../../../src/cli/context.ts';
import { refuseUnknownSigner } from '../../../src/cli/known-signer.ts';

const signer = { keyId: 'ana', sign: () => Buffer.alloc(64) };

function refuse(keys: string): string {
  const told: string[] = [];
  const stderr = { write: (text: string) => told.push(text) };
  const context = { environment: { MILLRACE_CONTROLLER_KEYS: keys }, stderr } as unknown as CliContext;
  refuseUnknownSigner(context, signer as unknown as Parameters<typeof refuseUnknownSigner>[1]);
  return told.join('');
}

it('says that a key was not checked where the key file is not here', () => {
  expect(refuse('/nowhere/keys.yaml')).toBe(
    'millrace: /nowhere/keys.yaml, which MILLRACE_CONTROLLER_KEYS names, is not here: whether it knows the key ana is not checked\n',
  );
});

it('says nothing where no key file is named', () => {
  expect(refuse('')).toBe('');
});

it('refuses a key that the file does not know', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'millrace-keys-')), 'keys.yaml');
  const { publicKey } = generateKeyPairSync('ed25519');
  const der = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
  writeFileSync(file, `keys: [{keyId: ben, role: person, publicKey: ${der}, scopes: ['policy/*']}]\n`);
  expect(() => refuse(file)).toThrowError(/has no key of this id.*"ana".*ben/);
});
