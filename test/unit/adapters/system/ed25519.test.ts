import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  ed25519PublicKey,
  ed25519Signer,
  ed25519Verifier,
  generateEd25519,
} from '../../../../src/adapters/system/ed25519.ts';

const { verify } = ed25519Verifier();
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');

/** RFC 8032, section 7.1: secret key, public key, message, signature. */
const VECTORS = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
] as const;

/** PKCS#8 of a secret key (RFC 8410). */
const pem = (secret: string): string =>
  `-----BEGIN PRIVATE KEY-----\n${bytes(`302e020100300506032b657004220420${secret}`).toString('base64')}\n-----END PRIVATE KEY-----\n`;

describe('ed25519', () => {
  it.each(VECTORS)('of the vector %s', (secret, publicKey, message, signature) => {
    const signer = ed25519Signer({ keyId: 'k', privateKeyPem: pem(secret) });
    expect(Buffer.from(signer.sign(bytes(message))).toString('hex')).toBe(signature);
    expect(Buffer.from(ed25519PublicKey(pem(secret))).toString('hex')).toBe(publicKey);
    expect(verify(bytes(publicKey), bytes(message), bytes(signature))).toBe(true);
    expect(verify(bytes(publicKey), bytes(`${message}00`), bytes(signature))).toBe(false);
  });

  it('makes pairs that fit', () => {
    const { privateKeyPem, publicKey } = generateEd25519();
    expect(publicKey).toHaveLength(32);
    const signature = ed25519Signer({ keyId: 'k', privateKeyPem: Buffer.from(privateKeyPem) }).sign(
      bytes('01'),
    );
    expect(verify(publicKey, bytes('01'), signature)).toBe(true);
    expect(verify(generateEd25519().publicKey, bytes('01'), signature)).toBe(false);
  });

  it.each([
    ['a short key', 31, 64],
    ['a long key', 33, 64],
    ['a short signature', 32, 63],
    ['no signature', 32, 0],
    ['zeros', 32, 64],
  ])('is false, and does not throw, for %s', (_what, key, signature) => {
    expect(verify(new Uint8Array(key), bytes('01'), new Uint8Array(signature))).toBe(false);
  });

  it('refuses what is no private key, without quoting it', () => {
    expect(() => ed25519Signer({ keyId: 'k', privateKeyPem: 'secret text' })).toThrow(
      /^this is not a private key \(allowed: an ed25519 private key in PEM.*millrace policy keygen/,
    );
    const { privateKey } = generateKeyPairSync('x25519');
    const other = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    expect(() => ed25519Signer({ keyId: 'k', privateKeyPem: other })).toThrow(
      /of another kind \(got "x25519"/,
    );
  });
});
