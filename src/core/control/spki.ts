/** What comes before the 32 bytes of an ed25519 public key in its SubjectPublicKeyInfo (RFC 8410). */
const PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00);

export const PUBLIC_KEY_BYTES = 32;

/** The DER of an ed25519 public key, from its 32 bytes. */
export function toSpki(publicKey: Uint8Array): Uint8Array {
  const der = new Uint8Array(PREFIX.byteLength + publicKey.byteLength);
  der.set(PREFIX);
  der.set(publicKey, PREFIX.byteLength);
  return der;
}

/** The 32 bytes of the ed25519 public key in a DER; undefined where it is none of one. */
export function fromSpki(der: Uint8Array): Uint8Array | undefined {
  const isOne =
    der.byteLength === PREFIX.byteLength + PUBLIC_KEY_BYTES &&
    PREFIX.every((byte, index) => byte === der[index]);
  return isOne ? new Uint8Array(der.subarray(PREFIX.byteLength)) : undefined;
}
