import { type ControlKey, isoTime, type KeyRing, keyRefusal } from './key-ring.ts';
import { isUsed, type SignatureState } from './signature-state.ts';
import { signatureVersion, signedBytes } from './signed-bytes.ts';

/** A signature as the envelope carries it. */
export interface CommandSignature {
  readonly keyId: string;
  readonly notAfter: number;
  readonly nonce: string;
  readonly version: number;
  readonly bytes: Uint8Array;
}

/** A command as far as signatures go; a ControlCommand is one. */
export interface SignableCommand {
  readonly commandId: string;
  readonly scope: string;
  readonly type: string;
  readonly body: Uint8Array;
  readonly signature: CommandSignature | null;
  readonly coSignature: CommandSignature | null;
}

/** ed25519 of RFC 8032: whether the signature (64 bytes) is one of this public key (32 bytes) over these bytes. Never throws. */
export type VerifySignature = (publicKey: Uint8Array, bytes: Uint8Array, signature: Uint8Array) => boolean;

export type CommandCheck =
  /** Who vouches for it: undefined for an unsigned one that the configuration lets pass. */
  | { readonly status: 'ok'; readonly signedBy: string | undefined; readonly coSignedBy: string | undefined }
  | { readonly status: 'refused'; readonly reason: string };

/** What the controller is configured to trust. */
export interface SignaturePolicy {
  readonly keys: KeyRing;
  /** A command without a signature is accepted. One with a signature that does not hold never is. */
  readonly acceptUnsigned: boolean;
}

/** A signature is for a command that is under way, not for a drawer. */
export const VALIDITY_MS_MAX = 24 * 3_600_000;

/** Nonces are kept in memory. */
const NONCE_LENGTH_MAX = 128;
const SIGNATURE_BYTES = 64;

/** By type of command: what signs and sends it. */
const SIGNED_BY: ReadonlyMap<string, string> = new Map([
  ['PUBLISH_POLICY', 'millrace policy publish --key'],
  ['PUBLISH_MODEL', 'millrace model publish --key'],
  ['START', 'millrace policy rollout start --key'],
  ['PROMOTE', 'millrace policy rollout promote --key'],
  ['HOLD', 'millrace policy rollout hold --key'],
  ['ABORT', 'millrace policy rollout abort --key'],
  ['ROLL_BACK', 'millrace policy rollout rollback --key'],
]);

/**
 * Whether the controller may act on a command, by who signed it. An unsigned one passes only where `policy.acceptUnsigned` says so. Without any key no
 * signature can be checked: it then counts for no more than none.
 *
 * @param atMs when the broker appended the command, ms since the epoch: the same on every replay, and a wait for a controller costs no validity
 */
export function checkSignature(
  policy: SignaturePolicy,
  state: SignatureState,
  command: SignableCommand,
  atMs: number,
  verify: VerifySignature,
): CommandCheck {
  const { keys, acceptUnsigned } = policy;
  if (command.signature === null && command.coSignature !== null)
    return refused('the command has a coSignature and no signature');
  if (acceptUnsigned && (command.signature === null || keys.size === 0))
    return { status: 'ok', signedBy: undefined, coSignedBy: undefined };
  if (command.signature === null && keys.size === 0)
    return refused(
      'the command is not signed, and this controller refuses every command: it has no keys; set controller.keys to a key file (millrace policy keygen makes its entries), or controller.acceptUnsigned',
    );
  if (command.signature === null)
    return refused(
      `the command is not signed, and this controller accepts no unsigned commands; sign it: ${SIGNED_BY.get(command.type) ?? 'millrace control send --key'}`,
    );
  if (keys.size === 0)
    return refused(
      'this controller has no key to verify signatures with; set controller.keys to a key file, or controller.acceptUnsigned',
    );
  return verifyCommand(keys, state, command, atMs, verify);
}

/** Whether the command carries a signature that holds, and, where it has a coSignature, another person's that holds too. */
export function verifyCommand(
  ring: KeyRing,
  state: SignatureState,
  command: SignableCommand,
  atMs: number,
  verify: VerifySignature,
): CommandCheck {
  const { signature, coSignature } = command;
  if (signature === null) return refused('the command is not signed');
  const first = verifyOne(ring, state, command, signature, atMs, verify);
  if (typeof first === 'string') return refused(first);
  if (coSignature === null) return { status: 'ok', signedBy: first.keyId, coSignedBy: undefined };
  const second = verifyOne(ring, state, command, coSignature, atMs, verify);
  if (typeof second === 'string') return refused(`coSignature: ${second}`);
  const notPerson = [first, second].find(({ role }) => role !== 'person');
  if (notPerson !== undefined)
    return refused(
      `coSignature: two people have to sign, and the key ${notPerson.keyId} is a ${notPerson.role}'s`,
    );
  if (isSameKey(first, second)) return refused('coSignature: it must be of another key than the signature');
  if (first.person !== undefined && first.person === second.person)
    return refused(
      `coSignature: two people have to sign, and the keys ${first.keyId} and ${second.keyId} are both of ${first.person}`,
    );
  return { status: 'ok', signedBy: first.keyId, coSignedBy: second.keyId };
}

/** @returns the key that signed, or why its signature does not count */
function verifyOne(
  ring: KeyRing,
  state: SignatureState,
  command: SignableCommand,
  signature: CommandSignature,
  atMs: number,
  verify: VerifySignature,
): ControlKey | string {
  const { keyId, version, nonce, bytes } = signature;
  const key = ring.get(keyId);
  if (key === undefined)
    return `the key ${JSON.stringify(keyId.slice(0, 64))} is not in the controller's key file; sign with a key that is, or name the id that it has there (--key-id)`;
  const { installation } = key;
  if (version !== signatureVersion(installation)) return wrongVersion(version, installation);
  if (state.revoked.has(keyId)) return `the key ${keyId} is revoked`;
  const notAllowed = keyRefusal(key, command, atMs);
  if (notAllowed !== undefined) return notAllowed;
  const outOfTime = timeRefusal(signature, atMs);
  if (outOfTime !== undefined) return outOfTime;
  if (nonce === '' || nonce.length > NONCE_LENGTH_MAX)
    return `the signature's nonce has ${nonce.length} characters; allowed: 1 … ${NONCE_LENGTH_MAX}`;
  const { scope, type, commandId, body } = command;
  const signed = signedBytes({ ...signature, installation, scope, type, commandId, body });
  if (bytes.byteLength !== SIGNATURE_BYTES || !verify(key.publicKey, signed, bytes))
    return notFitting(keyId, installation);
  // Last, so that nobody learns by it which nonces were used.
  if (isUsed(state, signature)) return `the nonce of the signature was used before: the command is a replay`;
  return key;
}

function notFitting(keyId: string, installation: string | undefined): string {
  const elsewhere =
    installation === undefined ? '' : `, or it was signed for another installation than ${installation}`;
  return `the signature of the key ${keyId} does not fit the command: it was changed after it was signed, or another key signed it (--key-id names the key that did)${elsewhere}`;
}

function wrongVersion(version: number, installation: string | undefined): string {
  if (version === signatureVersion(undefined))
    return `the signature names no installation, and must name ${installation}; sign it for that: --installation ${installation}, or the setting installation`;
  if (version === signatureVersion(''))
    return 'the signature is for an installation, and the key has none in the key file here; sign it without, or put `installation` to the key';
  return `the signature has version ${version}; allowed: ${signatureVersion(installation)}`;
}

function timeRefusal({ notAfter }: CommandSignature, atMs: number): string | undefined {
  if (!(atMs <= notAfter))
    return `the signature was valid until ${isoTime(notAfter)}, and the command arrived at ${isoTime(atMs)}; sign it again, and look at the clock where that is too early`;
  if (notAfter > atMs + VALIDITY_MS_MAX)
    return `the signature is valid until ${isoTime(notAfter)}, more than 24 h after the command arrived (${isoTime(atMs)})`;
  return undefined;
}

function isSameKey(one: ControlKey, other: ControlKey): boolean {
  return one.publicKey.every((byte, index) => byte === other.publicKey[index]);
}

function refused(reason: string): CommandCheck {
  return { status: 'refused', reason };
}
