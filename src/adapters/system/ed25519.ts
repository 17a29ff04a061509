import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { fromSpki, PUBLIC_KEY_BYTES, toSpki } from '../../core/control/spki.ts';
import { MillraceError } from '../../core/errors.ts';
import type { SignatureVerifier, Signer } from '../../ports/signatures.ts';

/** ed25519 of node:crypto. */
export function ed25519Verifier(): SignatureVerifier {
  return {
    verify(publicKey, message, signature) {
      if (publicKey.byteLength !== PUBLIC_KEY_BYTES) return false;
      try {
        const key = createPublicKey({
          key: Buffer.from(toSpki(publicKey)),
          format: 'der',
          type: 'spki',
        });
        return verify(null, message, key, signature);
      } catch {
        // 32 bytes that are no point of the curve.
        return false;
      }
    },
  };
}

/**
 * A signer from a private key in PEM (PKCS#8), as `millrace policy keygen` and `openssl genpkey -algorithm ed25519` write it.
 * @throws MillraceError INVALID_CONFIG where it is none; the message never quotes it
 */
export function ed25519Signer({
  privateKeyPem,
  ...named
}: {
  keyId: string;
  /** Where the key has one in the key file: the same. */
  installation?: string | undefined;
  privateKeyPem: string | Uint8Array;
}): Signer {
  const key = readPrivateKey(privateKeyPem);
  return { ...named, sign: (message) => sign(null, message, key) };
}

/** The public half of a private key, its 32 bytes. @throws MillraceError INVALID_CONFIG as `ed25519Signer` does */
export function ed25519PublicKey(privateKeyPem: string | Uint8Array): Uint8Array {
  return rawPublicKey(createPublicKey(readPrivateKey(privateKeyPem)));
}

/** A new pair: the private key as PEM (PKCS#8), the public one as its 32 bytes. */
export function generateEd25519(): { privateKeyPem: string; publicKey: Uint8Array } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    privateKeyPem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    publicKey: rawPublicKey(publicKey),
  };
}

function rawPublicKey(key: KeyObject): Uint8Array {
  const publicKey = fromSpki(key.export({ format: 'der', type: 'spki' }));
  if (publicKey === undefined) throw new Error('node:crypto exports ed25519 keys in another form');
  return publicKey;
}

function readPrivateKey(pem: string | Uint8Array): KeyObject {
  const allowed = 'an ed25519 private key in PEM, PKCS#8 and not encrypted';
  const advice = 'Make one with `millrace policy keygen`';
  let key: KeyObject;
  try {
    key = createPrivateKey(typeof pem === 'string' ? pem : Buffer.from(pem));
  } catch {
    // The cause may quote what it could not read.
    throw new MillraceError('INVALID_CONFIG', 'this is not a private key', { allowed, advice });
  }
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new MillraceError('INVALID_CONFIG', 'the private key is of another kind', {
    value: key.asymmetricKeyType,
    allowed,
    advice,
  });
}
