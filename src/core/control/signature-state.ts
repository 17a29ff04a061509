import { listNames, shorten } from '../errors.ts';
import { type KeyRing, mayRevoke } from './key-ring.ts';

/**
 * What earlier commands mean for the signatures of later ones: a fold of the commands that were accepted, in the order of the control topic. Plain
 * data; the same log always gives the same.
 */
export interface SignatureState {
  /** Keys that a command took out. They stay out, whatever the key file says. */
  readonly revoked: ReadonlySet<string>;
  /** Nonces of accepted signatures, with their notAfter. */
  readonly used: ReadonlyMap<string, number>;
  /** The latest notAfter among forgotten nonces: a signature that is not valid for longer could be one of theirs. */
  readonly forgottenMs: number;
}

export const INITIAL_SIGNATURE_STATE: SignatureState = {
  revoked: new Set(),
  used: new Map(),
  forgottenMs: Number.NEGATIVE_INFINITY,
};

/** A signature as far as memory needs it. */
export interface UsedSignature {
  readonly keyId: string;
  readonly nonce: string;
  readonly notAfter: number;
}

/** A broker's clock may be set back: nonces are kept for so long after they are of no use. */
const KEPT_MS = 24 * 3_600_000;

/** After a command was accepted at `atMs` with these signatures: their nonces are used, those that passed long ago are forgotten. */
export function rememberSignatures(
  state: SignatureState,
  signatures: readonly UsedSignature[],
  atMs: number,
): SignatureState {
  const used = new Map<string, number>();
  let { forgottenMs } = state;
  for (const [nonce, notAfter] of state.used) {
    if (notAfter + KEPT_MS < atMs) forgottenMs = Math.max(forgottenMs, notAfter);
    else used.set(nonce, notAfter);
  }
  for (const signature of signatures) used.set(nonceKey(signature), signature.notAfter);
  return { ...state, used, forgottenMs };
}

export function revokeKey(state: SignatureState, keyId: string): SignatureState {
  return { ...state, revoked: new Set(state.revoked).add(keyId) };
}

/** Whether this nonce of this key was used, or is too old to tell. */
export function isUsed(state: SignatureState, signature: UsedSignature): boolean {
  return state.used.has(nonceKey(signature)) || signature.notAfter <= state.forgottenMs;
}

/**
 * Why this key cannot be revoked; undefined where it can. The last person's key stays, whoever asks: with it would go the only one who can undo
 * what happens next. A key that has run out, is not valid yet, or may not sign for keys is nobody who could.
 *
 * @param atMs when the broker appended the command
 */
export function revocationRefusal(
  ring: KeyRing,
  state: SignatureState,
  keyId: string,
  atMs: number,
): string | undefined {
  const key = ring.get(keyId);
  if (key === undefined) return `there is no key ${shorten(keyId)}; known: ${listNames(ring.keys())}`;
  if (state.revoked.has(keyId)) return `the key ${keyId} is revoked already`;
  const others = [...ring.values()].filter(
    (each) => each.keyId !== keyId && !state.revoked.has(each.keyId) && mayRevoke(each, atMs),
  );
  if (key.role === 'person' && others.length === 0)
    return `${keyId} is the last key of a person who may sign for keys; put another one into the key file, restart the controller, then revoke this one with it`;
  return undefined;
}

/** Keys cannot hold a line break: their pattern forbids it. */
function nonceKey({ keyId, nonce }: UsedSignature): string {
  return `${keyId}\n${nonce}`;
}
