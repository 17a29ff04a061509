import { MillraceError } from '../errors.ts';
import type { KeyRing } from './key-ring.ts';
import type { SignedRevocation } from './policy-envelope.ts';
import { readRevokeKey } from './read-body.ts';
import {
  INITIAL_SIGNATURE_STATE,
  revocationRefusal,
  revokeKey,
  type SignatureState,
} from './signature-state.ts';
import { type VerifySignature, verifyCommand } from './verify-command.ts';

/** The scope of commands about keys: a key for policies alone must not be able to take keys out. */
export const KEYS_SCOPE = 'keys';

/**
 * The keys that are revoked after these commands, beside those that were before. Each command counts only by its own signature, in the order of
 * the list: a key that was taken out takes out no other. What a list lacks takes nothing back.
 */
export function foldRevocations(
  keys: KeyRing,
  before: ReadonlySet<string>,
  list: readonly SignedRevocation[],
  verify: VerifySignature,
): ReadonlySet<string> {
  let own: SignatureState = INITIAL_SIGNATURE_STATE;
  for (const command of list) {
    if (command.type !== 'REVOKE_KEY' || command.scope !== KEYS_SCOPE) continue;
    if (verifyCommand(keys, own, command, command.appendedMs, verify).status === 'refused') continue;
    const keyId = keyOf(command.body);
    if (keyId === undefined || revocationRefusal(keys, own, keyId, command.appendedMs) !== undefined)
      continue;
    own = revokeKey(own, keyId);
  }
  return new Set([...before, ...own.revoked]);
}

function keyOf(body: Uint8Array): string | undefined {
  try {
    return readRevokeKey(new TextDecoder().decode(body));
  } catch (error) {
    if (error instanceof MillraceError) return undefined;
    throw error;
  }
}
