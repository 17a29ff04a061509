import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ControlCommand } from '../../../../src/contracts/records.ts';
import { MISFIT } from '../../../../src/core/control/json-shape.ts';
import {
  type PolicyEnvelope,
  readEnvelope,
  readRevocations,
  type SignedRevocation,
  writeEnvelope,
  writeRevocations,
} from '../../../../src/core/control/policy-envelope.ts';
import { foldRevocations } from '../../../../src/core/control/revocations.ts';
import { verifyPolicy } from '../../../../src/core/control/verify-policy.ts';
import { command, HOUR_MS, NOW_MS, type Person, person, ringOf, signed, verify } from './keys.fixture.ts';

const ana = person('ana', { scopes: ['policy/*', 'keys'] });
const ben = person('ben', { scopes: ['policy/*', 'keys'] });
const old = person('old', { notAfter: NOW_MS + HOUR_MS });
const controller = person('controller', { role: 'controller' });
const keys = ringOf(ana, ben, old, controller);
const none: ReadonlySet<string> = new Set();
const text = Buffer.from('version: 2');
const policy = { scope: 'policy/starter', text };
const strict = { keys, acceptUnsigned: false };

function envelopeOf(sent: ControlCommand, fields: Partial<PolicyEnvelope['command']> = {}) {
  const { body, actor, ...rest } = sent;
  return { ...rest, appendedMs: NOW_MS, ...fields };
}

const published = (by: Person, unsigned = command()): PolicyEnvelope => ({
  kind: 'published',
  command: envelopeOf(signed(unsigned, by)),
});
const tuned = (by: Person, unsigned = command({ type: 'TUNE' })): PolicyEnvelope => ({
  kind: 'tuned',
  command: envelopeOf(signed(unsigned, by)),
  root: 'sha256:root',
});
const check = (envelope: PolicyEnvelope | undefined, trust = strict, revoked = none) =>
  verifyPolicy(trust, revoked, envelope, policy, verify);

describe('a policy at a router', () => {
  it.each([
    ['that a person published', published(ana), { status: 'ok', signedBy: 'ana', root: undefined }],
    [
      'that the controller tuned',
      tuned(controller),
      { status: 'ok', signedBy: 'controller', root: 'sha256:root' },
    ],
  ])('%s is run', (_name, envelope, expected) => expect(check(envelope)).toEqual(expected));

  it.each<[string, PolicyEnvelope | undefined, RegExp]>([
    ['that nobody signed', undefined, /nobody signed it/],
    ['without its signature', { kind: 'published', command: envelopeOf(command()) }, /not signed/],
    ['of a key that nobody knows', published(person('eve')), /eve.*not in the controller's key file/],
    ['that is another text', published(ana, command({ body: Buffer.from('version: 3') })), /does not fit/],
    [
      'of another scope',
      published(ana, command({ scope: 'policy/other' })),
      /for policy\/other, not for policy\/starter/,
    ],
    ['that another command is about', published(ana, command({ type: 'START' })), /START does not vouch/],
    ['that a controller published', published(controller), /may not sign PUBLISH_POLICY/],
    ['that a person tuned', tuned(ana), /ana is no key of a controller/],
    [
      'that was published as if it was tuned',
      { ...published(ana), kind: 'tuned', root: 'r' } as PolicyEnvelope,
      /PUBLISH_POLICY does not vouch/,
    ],
    [
      'that came too late',
      {
        kind: 'published',
        command: envelopeOf(signed(command(), ana), { appendedMs: NOW_MS + 2 * HOUR_MS }),
      },
      /valid until/,
    ],
  ])('%s is not run', (_name, envelope, reason) =>
    expect(check(envelope)).toEqual({ status: 'refused', reason: expect.stringMatching(reason) }),
  );

  it('is judged by the time of its command: a key that has run out since takes nothing out of force', () => {
    // years later nothing here is different: there is no clock in it
    expect(check(published(old))).toMatchObject({ status: 'ok', signedBy: 'old' });
    const late = {
      ...envelopeOf(signed(command(), old, { notAfterMs: NOW_MS + 3 * HOUR_MS })),
      appendedMs: NOW_MS + 2 * HOUR_MS,
    };
    expect(check({ kind: 'published', command: late })).toMatchObject({
      status: 'refused',
      reason: expect.stringContaining('was valid until'),
    });
  });

  it('of a key that was taken out is not run', () =>
    expect(check(published(ana), strict, new Set(['ana']))).toMatchObject({
      reason: 'the key ana is revoked',
    }));

  it.each([
    ['unsigned, no keys', { keys: new Map(), acceptUnsigned: true }, undefined, 'ok'],
    ['signed, no keys', { keys: new Map(), acceptUnsigned: true }, published(person('eve')), 'ok'],
    ['unsigned', { keys, acceptUnsigned: true }, undefined, 'ok'],
    ['badly signed', { keys, acceptUnsigned: true }, published(person('eve')), 'refused'],
    ['no keys and no leave', { keys: new Map(), acceptUnsigned: false }, published(ana), 'refused'],
  ])('where unsigned ones are accepted or there are no keys: %s', (_name, trust, envelope, status) =>
    expect(check(envelope, trust)).toMatchObject({ status }),
  );
});

describe('revocations', () => {
  const revoke = (keyId: string, by: Person, fields: Partial<ControlCommand> = {}): SignedRevocation => {
    const sent = signed(
      command({ type: 'REVOKE_KEY', scope: 'keys', body: Buffer.from(JSON.stringify({ keyId })), ...fields }),
      by,
    );
    return { ...envelopeOf(sent), body: sent.body };
  };
  const fold = (list: readonly SignedRevocation[], before = none) => [
    ...foldRevocations(keys, before, list, verify),
  ];

  it('count by their own signatures, in their order, and are never taken back', () => {
    expect(fold([revoke('ben', ana)])).toEqual(['ben']);
    expect(fold([revoke('ben', ana), revoke('ana', ben)])).toEqual(['ben']);
    expect(fold([], new Set(['ben']))).toEqual(['ben']);
  });

  it.each([
    ['of a key that may not', revoke('ben', controller)],
    ['of somebody unknown', revoke('ben', person('eve', { scopes: ['keys'] }))],
    ['in another scope', revoke('ben', ana, { scope: 'policy/keys' })],
    ['that are something else', revoke('ben', ana, { type: 'HOLD' })],
    ['of a key that is not there', revoke('eve', ana)],
    ['that cannot be read', revoke('', ana, { body: Buffer.from('ben') })],
  ])('%s count for nothing', (_name, revocation) => expect(fold([revocation])).toEqual([]));

  it('survive the store', () => {
    const list = [revoke('ben', ana), revoke('old', ana)];
    expect(readRevocations(writeRevocations(list))).toEqual(
      list.map((each) => ({
        ...each,
        body: new Uint8Array(each.body),
        signature: each.signature && { ...each.signature, bytes: new Uint8Array(each.signature.bytes) },
      })),
    );
  });
});

describe('an envelope in the store', () => {
  const bytes = fc.uint8Array({ maxLength: 80 }).map((each) => Uint8Array.from(each));
  const signature = fc.record({
    keyId: fc.string(),
    notAfter: fc.integer(),
    nonce: fc.string(),
    version: fc.nat(),
    bytes,
  });
  const sent = fc.record({
    commandId: fc.string(),
    scope: fc.string(),
    type: fc.string(),
    signature: fc.option(signature),
    coSignature: fc.option(signature),
    appendedMs: fc.nat(),
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(sent, fc.string(), fc.boolean(), (one, root, isTuned) => {
        const written: PolicyEnvelope = isTuned
          ? { kind: 'tuned', command: one, root }
          : { kind: 'published', command: one };
        expect(readEnvelope(writeEnvelope(written))).toEqual(written);
      }),
    );
  });

  it('is none for any bytes, and nothing throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (any) => {
          expect(readEnvelope(any)).toBe(MISFIT);
          readRevocations(any);
        },
      ),
    );
  });
});
