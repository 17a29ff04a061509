import { expect, it } from 'vitest';
import { MISFIT } from '../../../../src/core/control/json-shape.ts';
import {
  ENVELOPE_BYTES_MAX,
  REVOCATIONS_BYTES_MAX,
  readEnvelope,
  readRevocations,
  type SignedEnvelope,
  writeEnvelope,
  writeRevocations,
} from '../../../../src/core/control/policy-envelope.ts';

const signature = {
  keyId: 'k'.repeat(256),
  notAfter: 1,
  nonce: 'n'.repeat(128),
  version: 1,
  bytes: new Uint8Array(64),
};
const command: SignedEnvelope = {
  commandId: 'c'.repeat(256),
  scope: 's'.repeat(256),
  type: 'PUBLISH_POLICY',
  signature,
  coSignature: signature,
  appendedMs: 1,
};
/** JSON allows blanks at its end: the signature holds whatever is there. */
const padded = (bytes: Uint8Array, size: number): Uint8Array =>
  Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.byteLength), ' ')]);

it('an envelope is read up to its largest size, however it is padded', () => {
  const bytes = writeEnvelope({ kind: 'published', command });
  expect(readEnvelope(padded(bytes, ENVELOPE_BYTES_MAX))).toMatchObject({ kind: 'published' });
  expect(readEnvelope(padded(bytes, ENVELOPE_BYTES_MAX + 1))).toBe(MISFIT);
});

it('so is a list of revocations, and the longest one fits', () => {
  const each = { ...command, body: new Uint8Array(300) };
  const bytes = writeRevocations(Array.from({ length: 1_000 }, () => each));
  expect(readRevocations(padded(bytes, REVOCATIONS_BYTES_MAX))).toHaveLength(1_000);
  expect(readRevocations(padded(bytes, REVOCATIONS_BYTES_MAX + 1))).toBe(MISFIT);
});
