import { listNames, shorten } from '../errors.ts';
import { GrowingMap } from '../growing-map.ts';
import { type KeyRing, mayRevoke } from './key-ring.ts';

/**
 * What earlier commands mean for the signatures of later ones: a fold of the commands that were accepted, in the order of the control topic. Plain
 * data; the same log always gives the same.
 */
export interface SignatureState {
  /** Keys that a command took out. They stay out, whatever the key file says. */
  readonly revoked: ReadonlySet<string>;
  /** Nonces of accepted signatures, with their notAfter. */
  readonly used: GrowingMap<string, number>;
  /** The earliest notAfter of those. */
  readonly earliestMs: number;
  /** The latest notAfter among forgotten nonces: a signature that is not valid for longer could be one of theirs. */
  readonly forgottenMs: number;
  /** When nonces were forgotten last. */
  readonly forgotAtMs: number;
}

export const INITIAL_SIGNATURE_STATE: SignatureState = {
  revoked: new Set(),
  used: GrowingMap.of([]),
  earliestMs: Number.POSITIVE_INFINITY,
  forgottenMs: Number.NEGATIVE_INFINITY,
  forgotAtMs: Number.NEGATIVE_INFINITY,
};

/** A signature as far as memory needs it. */
export interface UsedSignature {
  readonly keyId: string;
  readonly nonce: string;
  readonly notAfter: number;
}

/** A broker's clock may be set back: nonces are kept for so long after they are of no use. */
const KEPT_MS = 24 * 3_600_000;
/** Forgetting goes through all of them: no more often than this, so that a long log is read in a time that grows with its length alone. */
const FORGET_EVERY_MS = 3_600_000;

/** After a command was accepted at `atMs` with these signatures: their nonces are used, those that passed long ago are forgotten. */
export function rememberSignatures(
  state: SignatureState,
  signatures: readonly UsedSignature[],
  atMs: number,
): SignatureState {
  const isDue = state.earliestMs + KEPT_MS < atMs && atMs - state.forgotAtMs >= FORGET_EVERY_MS;
  const kept = isDue ? forget(state, atMs) : state;
  let { used, earliestMs } = kept;
  for (const signature of signatures) {
    used = used.with(nonceKey(signature), signature.notAfter);
    earliestMs = Math.min(earliestMs, signature.notAfter);
  }
  return { ...kept, used, earliestMs };
}

function forget(state: SignatureState, atMs: number): SignatureState {
  const kept: [string, number][] = [];
  let { forgottenMs } = state;
  let earliestMs = Number.POSITIVE_INFINITY;
  for (const [nonce, notAfter] of state.used) {
    if (notAfter + KEPT_MS < atMs) {
      forgottenMs = Math.max(forgottenMs, notAfter);
    } else {
      kept.push([nonce, notAfter]);
      earliestMs = Math.min(earliestMs, notAfter);
    }
  }
  return { ...state, used: GrowingMap.of(kept), earliestMs, forgottenMs, forgotAtMs: atMs };
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
