/** Checks ed25519 signatures (RFC 8032). */
export interface SignatureVerifier {
  /**
   * Whether `signature` (64 bytes) is one over `message` by the key whose public half this is (32 bytes). False for anything of another
   * length; never throws.
   */
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

/** A private key that signs commands. */
export interface Signer {
  /** What the controller's key file calls it. */
  readonly keyId: string;
  /** The installation that it signs commands for, where the key file has one for the key. */
  readonly installation?: string | undefined;
  /** Detached ed25519 signature over exactly these bytes, 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}
