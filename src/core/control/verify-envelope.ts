import type { SignedEnvelope } from './policy-envelope.ts';
import { INITIAL_SIGNATURE_STATE, type SignatureState } from './signature-state.ts';
import { type SignaturePolicy, type VerifySignature, verifyCommand } from './verify-command.ts';

/** What somebody must vouch for. */
export interface VouchedFor {
  /** Of the command that does. */
  readonly type: string;
  readonly scope: string;
  /** Exact bytes of its body. */
  readonly body: Uint8Array;
  /** What it is, and who takes it: for messages. */
  readonly what: string;
  readonly taker: 'router' | 'worker';
}

export type EnvelopeVerdict =
  /** Nothing was checked, and nothing has to be. */
  | { readonly status: 'unchecked' }
  | { readonly status: 'ok'; readonly signedBy: string | undefined }
  | { readonly status: 'refused'; readonly reason: string };

/**
 * Whether what the control store holds may be taken, by the signed command beside it. The times in it are those of the command, never now: what was
 * good when it was decided does not go bad because a process restarts later. Nonces are the controller's matter: others take what is named, however
 * often.
 */
export function verifyEnvelope(
  { keys, acceptUnsigned }: SignaturePolicy,
  revoked: ReadonlySet<string>,
  command: SignedEnvelope | undefined,
  { type, scope, body, what, taker }: VouchedFor,
  verify: VerifySignature,
): EnvelopeVerdict {
  if (acceptUnsigned && (command === undefined || keys.size === 0)) return { status: 'unchecked' };
  if (command === undefined) return refused(`nobody signed it, and this ${taker} takes nothing unsigned`);
  if (keys.size === 0)
    return refused(
      `this ${taker} has no key to verify it with; set controller.keys to a key file, or controller.acceptUnsigned`,
    );
  if (command.type !== type) return refused(`a ${command.type} does not vouch for ${what}`);
  if (command.scope !== scope) return refused(`it was signed for ${command.scope}, not for ${scope}`);
  const state: SignatureState = { ...INITIAL_SIGNATURE_STATE, revoked };
  return verifyCommand(keys, state, { ...command, body }, command.appendedMs, verify);
}

function refused(reason: string): EnvelopeVerdict {
  return { status: 'refused', reason };
}
