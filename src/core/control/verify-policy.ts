import { MillraceError } from '../errors.ts';
import type { KeyRing } from './key-ring.ts';
import type { PolicyEnvelope, SignedRevocation } from './policy-envelope.ts';
import { readRevokeKey } from './read-body.ts';
import {
  INITIAL_SIGNATURE_STATE,
  revocationRefusal,
  revokeKey,
  type SignatureState,
} from './signature-state.ts';
import { type SignaturePolicy, type VerifySignature, verifyCommand } from './verify-command.ts';

/** The scope of commands about keys: a key for policies alone must not be able to take keys out. */
export const KEYS_SCOPE = 'keys';

export type SignatureVerdict =
  /** `root`: the policy that people published, of which this one may differ in tuned constants only. */
  | { readonly status: 'ok'; readonly signedBy: string | undefined; readonly root: string | undefined }
  | { readonly status: 'refused'; readonly reason: string };

/**
 * Whether a router may run a policy, by who vouches for its text. The times in it are those of the command, never now: what was good when it was
 * decided does not go bad because a router restarts later. Nonces are the controller's matter: a router runs what is named, however often.
 *
 * @param scope of the pointer that names the policy
 * @param text exact bytes
 */
export function verifyPolicy(
  trust: SignaturePolicy,
  revoked: ReadonlySet<string>,
  envelope: PolicyEnvelope | undefined,
  { scope, text }: { scope: string; text: Uint8Array },
  verify: VerifySignature,
): SignatureVerdict {
  const { keys, acceptUnsigned } = trust;
  if (acceptUnsigned && (envelope === undefined || keys.size === 0))
    return { status: 'ok', signedBy: undefined, root: undefined };
  if (envelope === undefined) return refused('nobody signed it, and this router runs nothing unsigned');
  if (keys.size === 0)
    return refused(
      'this router has no key to verify it with; set controller.keys to a key file, or controller.acceptUnsigned',
    );
  const { kind, command } = envelope;
  const type = kind === 'published' ? 'PUBLISH_POLICY' : 'TUNE';
  if (command.type !== type) return refused(`a ${command.type} does not vouch for a policy that was ${kind}`);
  if (command.scope !== scope) return refused(`it was signed for ${command.scope}, not for ${scope}`);
  const state: SignatureState = { ...INITIAL_SIGNATURE_STATE, revoked };
  const checked = verifyCommand(keys, state, { ...command, body: text }, command.appendedMs, verify);
  if (checked.status === 'refused') return checked;
  // What a person signs as TUNE is the name of a constant and its value; the text is the controller's.
  if (kind === 'tuned' && keys.get(checked.signedBy ?? '')?.role !== 'controller')
    return refused(`${checked.signedBy} is no key of a controller, which alone makes policies by tuning`);
  return { status: 'ok', signedBy: checked.signedBy, root: kind === 'tuned' ? envelope.root : undefined };
}

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

function refused(reason: string): SignatureVerdict {
  return { status: 'refused', reason };
}
