/** Says what is signed, so that a signature over anything else is never one of a command. */
const DOMAIN = 'millrace.v1.ControlCommand';

/** The version of the encoding below: 1 names no installation, 2 does. */
export function signatureVersion(installation: string | undefined): number {
  return installation === undefined ? 1 : 2;
}

/** What a signature vouches for. `actor` is not in it: the log names the key that signed. */
export interface SignedFields {
  /** Key that signs. */
  readonly keyId: string;
  readonly scope: string;
  readonly type: string;
  readonly commandId: string;
  readonly version: number;
  /** The installation that the command is for, in version 2: another one that trusts the key takes it for nothing. */
  readonly installation: string | undefined;
  /** Not to be accepted later, ms since the epoch. */
  readonly notAfter: number;
  readonly nonce: string;
  /** The command's body, exactly. */
  readonly body: Uint8Array;
}

/**
 * The bytes that ed25519 signs: nine fields (ten in version 2), each as its length (4 bytes, big-endian) and its bytes. In this order: the text
 * `millrace.v1.ControlCommand`, keyId, scope, type, commandId, version, in version 2 installation, notAfter, nonce, body. Texts are UTF-8; the two numbers are decimal digits. With
 * the lengths no two commands have the same bytes.
 */
export function signedBytes(fields: SignedFields): Uint8Array {
  const { keyId, scope, type, commandId, version, installation, notAfter, nonce, body } = fields;
  const named = installation === undefined ? [] : [installation];
  const texts = [DOMAIN, keyId, scope, type, commandId, String(version), ...named, String(notAfter), nonce];
  const encoder = new TextEncoder();
  const parts = [...texts.map((text) => encoder.encode(text)), body];
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + LENGTH_BYTES + part.byteLength, 0));
  const lengths = new DataView(bytes.buffer);
  let at = 0;
  for (const part of parts) {
    lengths.setUint32(at, part.byteLength);
    bytes.set(part, at + LENGTH_BYTES);
    at += LENGTH_BYTES + part.byteLength;
  }
  return bytes;
}

const LENGTH_BYTES = 4;
