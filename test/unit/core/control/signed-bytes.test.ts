import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ed25519Verifier } from '../../../../src/adapters/system/ed25519.ts';
import { type SignedFields, signedBytes } from '../../../../src/core/control/signed-bytes.ts';

const COMMAND: SignedFields = {
  keyId: 'ana-2026',
  scope: 'policy/starter',
  type: 'PUBLISH_POLICY',
  commandId: 'c-1',
  version: 1,
  installation: undefined,
  notAfter: 1_798_761_600_000,
  nonce: 'n-1',
  body: Buffer.from('version: 2\n'),
};

/** Made with Python's struct module, see docs/clients/control.md. */
const GOLDEN =
  '0000001a6d696c6c726163652e76312e436f6e74726f6c436f6d6d616e64' +
  '00000008616e612d32303236' +
  '0000000e706f6c6963792f73746172746572' +
  '0000000e5055424c4953485f504f4c494359' +
  '00000003632d31' +
  '0000000131' +
  '0000000d31373938373631363030303030' +
  '000000036e2d31' +
  '0000000b76657273696f6e3a20320a';

/** Made with Python's cryptography and the first key of RFC 8032. */
const PUBLIC_KEY = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
const SIGNATURE =
  '13df5eeee1f502beef90c147eb25cd4461165c46b0799f61383379f986948778d3160a1907fafee8dcdfab1493117f5928955f3363c3395266627a42d76a8c0a';

const hex = (fields: SignedFields): string => Buffer.from(signedBytes(fields)).toString('hex');

const fields = fc.record({
  keyId: fc.string(),
  scope: fc.string(),
  type: fc.string(),
  commandId: fc.string(),
  version: fc.nat(),
  installation: fc.option(fc.string({ unit: 'grapheme-ascii' }), { nil: undefined }),
  notAfter: fc.nat(),
  nonce: fc.string(),
  body: fc.uint8Array(),
});

describe('the bytes that are signed', () => {
  it('are these, for ever', () => {
    expect(hex(COMMAND)).toBe(GOLDEN);
  });

  it('fit a signature that another language made, as the page for clients shows it', () => {
    const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
    expect(ed25519Verifier().verify(bytes(PUBLIC_KEY), signedBytes(COMMAND), bytes(SIGNATURE))).toBe(true);
    const page = readFileSync('docs/clients/control.md', 'utf8').replaceAll(/\s/g, '');
    for (const text of [GOLDEN, SIGNATURE]) expect(page).toContain(text);
  });

  it('name the installation in version 2, after the version, and have ten fields then', () => {
    const named = GOLDEN.replace(
      '0000000131' + '0000000d',
      '0000000132' + '0000000770726f642d6575' + '0000000d',
    );
    expect(hex({ ...COMMAND, version: 2, installation: 'prod-eu' })).toBe(named);
  });

  it('are UTF-8, with lengths in bytes', () => {
    const other = { ...COMMAND, keyId: 'ü', scope: 'policy/é', type: 'HOLD', commandId: '', nonce: '' };
    expect(hex({ ...other, notAfter: 0, body: new Uint8Array() })).toBe(
      '0000001a6d696c6c726163652e76312e436f6e74726f6c436f6d6d616e6400000002c3bc00000009706f6c6963792fc3a900000004484f4c4400000000000000013100000001300000000000000000',
    );
  });

  it.each(Object.keys(COMMAND) as (keyof SignedFields)[])('depend on %s', (name: keyof SignedFields) => {
    const value = COMMAND[name];
    const changed =
      typeof value === 'number'
        ? value + 1
        : typeof value === 'object'
          ? new Uint8Array(3)
          : `${value ?? ''}x`;
    expect(hex({ ...COMMAND, [name]: changed })).not.toBe(GOLDEN);
  });

  it('differ where any field does, also where a text moves from one field to the next', () => {
    fc.assert(
      fc.property(fields, fields, (one, other) => {
        const same =
          JSON.stringify({ ...one, body: [...one.body] }) ===
          JSON.stringify({ ...other, body: [...other.body] });
        expect(hex(one) === hex(other)).toBe(same);
      }),
    );
    expect(hex({ ...COMMAND, keyId: 'ab', scope: 'c' })).not.toBe(
      hex({ ...COMMAND, keyId: 'a', scope: 'bc' }),
    );
  });

  it('can be taken apart again', () => {
    fc.assert(
      fc.property(fields, (one) => {
        const bytes = Buffer.from(signedBytes(one));
        const parts: Buffer[] = [];
        for (let at = 0; at < bytes.length; ) {
          const end = at + 4 + bytes.readUInt32BE(at);
          parts.push(bytes.subarray(at + 4, end));
          at = end;
        }
        const named = one.installation === undefined ? 0 : 1;
        expect(parts.length).toBe(9 + named);
        expect([...(parts[8 + named] ?? [])]).toEqual([...one.body]);
        expect(named === 0 ? undefined : parts[6]?.toString()).toBe(one.installation);
        expect(parts[5]?.toString()).toBe(String(one.version));
      }),
    );
  });
});
