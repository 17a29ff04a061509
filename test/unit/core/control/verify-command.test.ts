import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ControlCommand } from '../../../../src/contracts/records.ts';
import {
  INITIAL_SIGNATURE_STATE,
  rememberSignatures,
  revokeKey,
  type SignatureState,
} from '../../../../src/core/control/signature-state.ts';
import { checkSignature, verifyCommand } from '../../../../src/core/control/verify-command.ts';
import {
  command,
  coSigned,
  HOUR_MS,
  MINUTE_MS,
  NOW_MS,
  type Person,
  person,
  ringOf,
  signed,
  verify,
} from './keys.fixture.ts';

const ana = person('ana');
const ben = person('ben');
const tuner = person('tuner', { role: 'controller' });
const early = person('early', { notBefore: NOW_MS + 1 });
const late = person('late', { notAfter: NOW_MS });
const stranger = person('stranger');
const anaAgain: Person = {
  key: { ...ana.key, keyId: 'ana-again' },
  signer: { ...ana.signer, keyId: 'ana-again' },
};
const [dora, doraBefore] = ['dora-2026', 'dora-2025'].map((keyId) => person(keyId, { person: 'dora' }));
if (dora === undefined || doraBefore === undefined) throw new Error('both keys were made');
const ring = ringOf(ana, ben, tuner, early, late, anaAgain, dora, doraBefore);

function check(sent: ControlCommand, state: SignatureState = INITIAL_SIGNATURE_STATE, atMs = NOW_MS) {
  return verifyCommand(ring, state, sent, atMs, verify);
}

function reasonOf(sent: ControlCommand, state?: SignatureState, atMs?: number): string {
  const checked = check(sent, state, atMs);
  return checked.status === 'refused' ? checked.reason : 'accepted';
}

describe('a signed command', () => {
  it('counts where its key is known, in scope and in time', () => {
    expect(check(signed(command(), ana))).toEqual({ status: 'ok', signedBy: 'ana', coSignedBy: undefined });
  });

  it('counts in the installation that its key is for, and in no other', () => {
    const prod = person('dora', { installation: 'prod' });
    const sent = signed(command(), prod);
    const inRing = (key: Person['key']) =>
      verifyCommand(new Map([[key.keyId, key]]), INITIAL_SIGNATURE_STATE, sent, NOW_MS, verify);
    expect(sent.signature).toMatchObject({ version: 2 });
    expect(inRing(prod.key)).toMatchObject({ status: 'ok', signedBy: 'dora' });
    expect(inRing({ ...prod.key, installation: 'staging' })).toMatchObject({
      status: 'refused',
      reason: expect.stringMatching(/signed for another installation than staging/),
    });
    expect(inRing({ ...prod.key, installation: undefined })).toMatchObject({
      status: 'refused',
      reason: expect.stringMatching(/the signature is for an installation, and the key has none/),
    });
  });

  it('that names no installation counts nowhere where the key has one', () => {
    const sent = signed(command(), ana);
    const key = { ...ana.key, installation: 'prod' };
    const checked = verifyCommand(new Map([['ana', key]]), INITIAL_SIGNATURE_STATE, sent, NOW_MS, verify);
    expect(checked).toMatchObject({ status: 'refused', reason: expect.stringMatching(/must name prod/) });
    const relabelled = withSignature(sent, { version: 2 });
    expect(
      verifyCommand(new Map([['ana', key]]), INITIAL_SIGNATURE_STATE, relabelled, NOW_MS, verify),
    ).toMatchObject({ status: 'refused', reason: expect.stringMatching(/does not fit/) });
  });

  it('says who co-signed it', () => {
    expect(check(coSigned(signed(command(), ana), ben))).toEqual({
      status: 'ok',
      signedBy: 'ana',
      coSignedBy: 'ben',
    });
  });

  it('may be co-signed by somebody else than the person of its key', () => {
    expect(check(coSigned(signed(command(), dora), ana))).toMatchObject({ status: 'ok', coSignedBy: 'ana' });
    expect(check(coSigned(signed(command(), ben), dora))).toMatchObject({ status: 'ok', signedBy: 'ben' });
  });

  it('keeps its signature whatever actor it names', () => {
    expect(check({ ...signed(command(), ana), actor: 'somebody' })).toMatchObject({ status: 'ok' });
  });

  it.each([
    ['until the very moment that it arrives', { notAfterMs: NOW_MS }],
    ['for 24 hours', { notAfterMs: NOW_MS + 24 * HOUR_MS }],
    ['with a nonce of 128 characters', { nonce: 'n'.repeat(128) }],
  ])('may be signed %s', (_, terms) => {
    expect(check(signed(command(), ana, terms))).toMatchObject({ status: 'ok' });
  });

  it('has 64 bytes of signature, whatever a verifier makes of others', () => {
    const sent = withSignature(signed(command(), ana), { bytes: Buffer.alloc(65) });
    const checked = verifyCommand(ring, INITIAL_SIGNATURE_STATE, sent, NOW_MS, () => true);
    expect(checked).toMatchObject({ status: 'refused', reason: expect.stringMatching(/does not fit/) });
  });

  const changes: [string, (sent: ControlCommand) => ControlCommand][] = [
    ['scope', (sent) => ({ ...sent, scope: 'policy/other' })],
    ['type', (sent) => ({ ...sent, type: 'ABORT' })],
    ['commandId', (sent) => ({ ...sent, commandId: 'c-2' })],
    ['body', (sent) => ({ ...sent, body: Buffer.from('version: 3') })],
    ['notAfter', (sent) => withSignature(sent, { notAfter: NOW_MS + 2 * HOUR_MS })],
    ['nonce', (sent) => withSignature(sent, { nonce: 'another' })],
    ['key', (sent) => withSignature(sent, { keyId: 'ben' })],
    ['signature', (sent) => withSignature(sent, { bytes: Buffer.alloc(64, 7) })],
    ['length of the signature', (sent) => withSignature(sent, { bytes: Buffer.alloc(63) })],
    ['signature, which is empty', (sent) => withSignature(sent, { bytes: Buffer.alloc(0) })],
  ];

  // Row 14 of the fault matrix: a bad signature.
  it.each(changes)('is refused where somebody changed its %s', (_what, change) => {
    expect(reasonOf(change(signed(command(), ana)))).toMatch(/does not fit the command/);
  });

  it('is refused where any bit of what is signed, or of the signature, is another', () => {
    const sent = signed(command(), ana);
    fc.assert(
      fc.property(
        fc.constantFrom('body', 'bytes'),
        fc.nat(),
        fc.integer({ min: 0, max: 7 }),
        (where, at, bit) => {
          const original = where === 'body' ? sent.body : (sent.signature?.bytes ?? Buffer.alloc(1));
          const flipped = Buffer.from(original);
          const index = at % flipped.length;
          flipped[index] = (flipped[index] ?? 0) ^ (1 << bit);
          const changed =
            where === 'body' ? { ...sent, body: flipped } : withSignature(sent, { bytes: flipped });
          expect(reasonOf(changed)).toMatch(/does not fit the command/);
        },
      ),
    );
  });

  const refusals: [string, ControlCommand, RegExp][] = [
    ['no signature', command(), /not signed/],
    [
      'a key that is not in the file',
      signed(command(), stranger),
      /"stranger" is not in the controller's key file/,
    ],
    [
      'a key that is not valid yet',
      signed(command(), early),
      /early is valid from 2026-11-30T12:00:00\.001Z/,
    ],
    [
      'a key that is valid no more',
      signed(command(), late),
      /late was valid until 2026-11-30T12:00:00\.000Z/,
    ],
    [
      'another scope',
      signed(command({ scope: 'keys', type: 'REVOKE_KEY' }), ana),
      /may not sign for keys; its scopes: policy\/\*/,
    ],
    [
      "a controller's key that publishes",
      signed(command(), tuner),
      /controller's, and may not sign PUBLISH_POLICY; allowed: PROMOTE, HOLD/,
    ],
    [
      "a controller's key that publishes a model",
      signed(command({ type: 'PUBLISH_MODEL' }), tuner),
      /may not sign PUBLISH_MODEL/,
    ],
    [
      'a model, of a key for policies',
      signed(command({ scope: 'model/ranker', type: 'PUBLISH_MODEL' }), ana),
      /may not sign for model\/ranker; its scopes: policy\/\*/,
    ],
    [
      "a controller's key that starts a rollout",
      signed(command({ type: 'START' }), tuner),
      /may not sign START/,
    ],
    [
      'a signature that is too old',
      signed(command(), ana, { notAfterMs: NOW_MS - 1 }),
      /was valid until 2026-11-30T11:59:59\.999Z, and the command arrived at 2026-11-30T12:00:00\.000Z/,
    ],
    [
      'a signature for too long',
      signed(command(), ana, { notAfterMs: NOW_MS + 24 * HOUR_MS + 1 }),
      /more than 24 h after the command arrived/,
    ],
    ['no nonce', signed(command(), ana, { nonce: '' }), /nonce has 0 characters/],
    [
      'a long nonce',
      signed(command(), ana, { nonce: 'x'.repeat(129) }),
      /nonce has 129 characters; allowed: 1 … 128/,
    ],
    [
      'another version of the envelope',
      withSignature(signed(command(), ana), { version: 3 }),
      /the signature has version 3; allowed: 1/,
    ],
    ['its own co-signature', coSigned(signed(command(), ana), ana, { nonce: 'o' }), /of another key/],
    [
      'a co-signature by the same key of another name',
      coSigned(signed(command(), ana), anaAgain),
      /of another key/,
    ],
    [
      'a co-signature by another key of the same person',
      coSigned(signed(command(), dora), doraBefore),
      /two people have to sign, and the keys dora-2026 and dora-2025 are both of dora/,
    ],
    [
      'a co-signature of a controller',
      coSigned(signed(command({ type: 'PROMOTE' }), ana), tuner),
      /two people have to sign, and the key tuner is a controller's/,
    ],
    [
      "a controller's signature that a person co-signed",
      coSigned(signed(command({ type: 'PROMOTE' }), tuner), ana),
      /two people have to sign, and the key tuner is a controller's/,
    ],
    [
      'a co-signature of another command',
      { ...signed(command(), ana), coSignature: signed(command({ commandId: 'c-9' }), ben).signature },
      /coSignature: the signature of the key ben does not fit/,
    ],
    [
      'a co-signature that is too old',
      coSigned(signed(command(), ana), ben, { notAfterMs: NOW_MS - 1 }),
      /coSignature: .*was valid until/,
    ],
  ];

  it.each(refusals)('is refused for %s', (_what, sent, reason) => {
    expect(reasonOf(sent)).toMatch(reason);
  });

  it.each(['PROMOTE', 'HOLD', 'ABORT', 'ROLL_BACK', 'TUNE'] as const)(
    "of type %s may be of a controller's key",
    (type) => {
      expect(check(signed(command({ type }), tuner))).toMatchObject({ status: 'ok', signedBy: 'tuner' });
    },
  );

  it('is accepted to its last millisecond', () => {
    const sent = signed(command(), ana, { notAfterMs: NOW_MS });
    expect([reasonOf(sent), reasonOf(sent, undefined, NOW_MS + 1)]).toEqual([
      'accepted',
      expect.stringMatching(/was valid until/),
    ]);
  });
});

// Row 15 of the fault matrix: an old command again.
describe('a replay', () => {
  const afterwards = (sent: ControlCommand, atMs = NOW_MS): SignatureState =>
    rememberSignatures(INITIAL_SIGNATURE_STATE, signaturesOf(sent), atMs);

  it('of an accepted command is refused', () => {
    const sent = signed(command(), ana);
    expect(reasonOf(sent)).toBe('accepted');
    expect(reasonOf(sent, afterwards(sent))).toMatch(/used before: the command is a replay/);
  });

  it('of a nonce for another command is refused, and so is the nonce of a co-signature', () => {
    const first = coSigned(signed(command(), ana, { nonce: 'n' }), ben, { nonce: 'm' });
    const state = afterwards(first);
    expect(reasonOf(signed(command({ commandId: 'c-2' }), ana, { nonce: 'n' }), state)).toMatch(/replay/);
    expect(reasonOf(signed(command({ commandId: 'c-2' }), ben, { nonce: 'm' }), state)).toMatch(/replay/);
    // Nonces are of a key.
    expect(reasonOf(signed(command({ commandId: 'c-2' }), ben, { nonce: 'n' }), state)).toBe('accepted');
  });

  it('does not become acceptable when its nonce is forgotten, even on a clock that was set back', () => {
    const sent = signed(command(), ana, { notAfterMs: NOW_MS + MINUTE_MS });
    const later = signed(command({ commandId: 'c-2' }), ana, { notAfterMs: NOW_MS + 30 * HOUR_MS });
    const state = rememberSignatures(afterwards(sent), signaturesOf(later), NOW_MS + 29 * HOUR_MS);
    expect(state.used.size).toBe(1);
    expect(reasonOf(sent, state)).toMatch(/replay/);
    expect(reasonOf(signed(command({ commandId: 'c-3' }), ana), state)).toBe('accepted');
  });

  it('is never accepted, in whatever order and at whatever times commands arrive', () => {
    const pool = [0, 1, 2, 3].map((n) =>
      signed(command({ commandId: `c-${n}` }), ana, {
        notAfterMs: NOW_MS + n * 10 * HOUR_MS,
        nonce: `p-${n}`,
      }),
    );
    const arrival = fc.record({ which: fc.nat(3), hours: fc.integer({ min: -30, max: 60 }) });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 30 }), (arrivals) => {
        let state = INITIAL_SIGNATURE_STATE;
        const accepted: number[] = [];
        for (const { which, hours } of arrivals) {
          const sent = pool[which] ?? command();
          const atMs = NOW_MS + hours * HOUR_MS;
          if (check(sent, state, atMs).status !== 'ok') continue;
          accepted.push(which);
          state = rememberSignatures(state, signaturesOf(sent), atMs);
        }
        expect(new Set(accepted).size).toBe(accepted.length);
      }),
    );
  });
});

describe('a revoked key', () => {
  it('signs and co-signs nothing from then on; the others do', () => {
    const state = revokeKey(INITIAL_SIGNATURE_STATE, 'ana');
    expect(reasonOf(signed(command(), ana), state)).toBe('the key ana is revoked');
    expect(reasonOf(coSigned(signed(command(), ben), ana), state)).toBe(
      'coSignature: the key ana is revoked',
    );
    expect(reasonOf(signed(command(), ben), state)).toBe('accepted');
  });
});

describe('what the configuration asks for', () => {
  const keys = ring;
  const none = new Map();
  const sent = signed(command(), ana);
  const bad = withSignature(sent, { nonce: 'other' });
  const cases: [string, { keys: typeof keys; acceptUnsigned: boolean }, ControlCommand, string | RegExp][] = [
    [
      'unsigned, keys',
      { keys, acceptUnsigned: false },
      command(),
      /is not signed, and this controller accepts no unsigned/,
    ],
    ['unsigned, no keys', { keys: none, acceptUnsigned: false }, command(), /is not signed/],
    ['unsigned, trusting', { keys, acceptUnsigned: true }, command(), 'nobody'],
    ['unsigned, trusting, no keys', { keys: none, acceptUnsigned: true }, command(), 'nobody'],
    ['signed, keys', { keys, acceptUnsigned: false }, sent, 'ana'],
    [
      'signed, no keys',
      { keys: none, acceptUnsigned: false },
      sent,
      /no key to verify signatures with; set controller\.keys/,
    ],
    ['signed, trusting', { keys, acceptUnsigned: true }, sent, 'ana'],
    ['badly signed, trusting', { keys, acceptUnsigned: true }, bad, /does not fit the command/],
    ['signed, trusting, no keys: nobody checked it', { keys: none, acceptUnsigned: true }, bad, 'nobody'],
    [
      'only co-signed, trusting',
      { keys, acceptUnsigned: true },
      { ...command(), coSignature: sent.signature },
      /a coSignature and no signature/,
    ],
  ];

  it.each(cases)('%s', (_what, policy, given, expected) => {
    const checked = checkSignature(policy, INITIAL_SIGNATURE_STATE, given, NOW_MS, verify);
    const told = checked.status === 'refused' ? checked.reason : (checked.signedBy ?? 'nobody');
    expect(told).toMatch(expected);
  });
});

function withSignature(
  sent: ControlCommand,
  fields: Partial<NonNullable<ControlCommand['signature']>>,
): ControlCommand {
  if (sent.signature === null) throw new Error('not signed');
  return { ...sent, signature: { ...sent.signature, ...fields } };
}

function signaturesOf({ signature, coSignature }: ControlCommand) {
  return [signature, coSignature].filter((each) => each !== null);
}
