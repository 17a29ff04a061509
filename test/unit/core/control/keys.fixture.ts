import { ed25519Signer, ed25519Verifier, generateEd25519 } from '../../../../src/adapters/system/ed25519.ts';
import { signCommand } from '../../../../src/client/sign-command.ts';
import { type ControlCommand, makeControlCommand } from '../../../../src/contracts/records.ts';
import type { ControlKey, KeyRing } from '../../../../src/core/control/key-ring.ts';
import type { Signer } from '../../../../src/ports/signatures.ts';

export interface Person {
  key: ControlKey;
  signer: Signer;
}

/** A key of its own, by default a person's for all policies. */
export function person(keyId: string, fields: Partial<ControlKey> = {}): Person {
  const { privateKeyPem, publicKey } = generateEd25519();
  const key: ControlKey = {
    keyId,
    role: 'person',
    person: undefined,
    publicKey,
    scopes: ['policy/*'],
    installation: undefined,
    notBefore: undefined,
    notAfter: undefined,
    ...fields,
  };
  return { key, signer: ed25519Signer({ keyId, privateKeyPem, installation: key.installation }) };
}

export function ringOf(...people: readonly Person[]): KeyRing {
  return new Map(people.map(({ key }) => [key.keyId, key]));
}

export const { verify } = ed25519Verifier();

export const NOW_MS = Date.UTC(2026, 10, 30, 12);
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

export function command(fields: Partial<ControlCommand> = {}): ControlCommand {
  return makeControlCommand({
    commandId: 'c-1',
    scope: 'policy/starter',
    type: 'PUBLISH_POLICY',
    body: Buffer.from('version: 2'),
    actor: 'ana',
    ...fields,
  });
}

let nonces = 0;

export function signed(
  unsigned: ControlCommand,
  { signer }: Person,
  terms: { notAfterMs?: number; nonce?: string } = {},
): ControlCommand {
  nonces += 1;
  const { notAfterMs = NOW_MS + HOUR_MS, nonce = `n-${nonces}` } = terms;
  return { ...unsigned, signature: signCommand(unsigned, signer, { notAfterMs, nonce }) };
}

export function coSigned(
  once: ControlCommand,
  by: Person,
  terms: { notAfterMs?: number; nonce?: string } = {},
): ControlCommand {
  return { ...once, coSignature: signed(once, by, terms).signature };
}
