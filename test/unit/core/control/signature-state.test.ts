import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  INITIAL_SIGNATURE_STATE,
  isUsed,
  rememberSignatures,
  revocationRefusal,
  revokeKey,
} from '../../../../src/core/control/signature-state.ts';
import { HOUR_MS, MINUTE_MS, NOW_MS, person, ringOf } from './keys.fixture.ts';

const scopes = ['keys'];
const ring = ringOf(
  person('ana', { scopes }),
  person('ben', { scopes }),
  person('tuner', { role: 'controller' }),
);

describe('revoking a key', () => {
  it.each([
    ['a person, while another stays', [], 'ana', undefined],
    [
      'the last person',
      ['ben'],
      'ana',
      /ana is the last key of a person who may sign for keys; put another one into/,
    ],
    ["a controller's, whoever stays", ['ben'], 'tuner', undefined],
    ['what is revoked', ['ana'], 'ana', /revoked already/],
    ['what is no key', [], 'cleo', /no key "cleo"; known: ana, ben, tuner/],
  ] as const)('%s', (_what, revoked, keyId, reason) => {
    const state = revoked.reduce(revokeKey, INITIAL_SIGNATURE_STATE);
    const told = revocationRefusal(ring, state, keyId, NOW_MS);
    if (reason === undefined) expect(told).toBeUndefined();
    else expect(told).toMatch(reason);
  });
});

describe('the last person who could undo what happens next', () => {
  it.each([
    ['has run out', { scopes, notAfter: NOW_MS }],
    ['is not valid yet', { scopes, notBefore: NOW_MS + 1 }],
    ['may not sign for keys', { scopes: ['policy/*'] }],
  ])('stays, where the key of the other one %s', (_what, fields) => {
    const two = ringOf(person('ana', { scopes: ['*'] }), person('ben', fields));
    expect(revocationRefusal(two, INITIAL_SIGNATURE_STATE, 'ana', NOW_MS)).toMatch(/last key of a person/);
    expect(revocationRefusal(two, INITIAL_SIGNATURE_STATE, 'ben', NOW_MS)).toBeUndefined();
  });
});

describe('the memory of nonces', () => {
  const signature = (nonce: string, hours: number) => ({
    keyId: 'ana',
    nonce,
    notAfter: NOW_MS + hours * HOUR_MS,
  });

  it('keeps a nonce for a day after it is of use, then refuses everything that old', () => {
    let state = rememberSignatures(INITIAL_SIGNATURE_STATE, [signature('a', 1)], NOW_MS);
    state = rememberSignatures(state, [signature('b', 25)], NOW_MS + 25 * HOUR_MS);
    expect(state.used.size).toBe(2);
    state = rememberSignatures(state, [], NOW_MS + 25 * HOUR_MS + 1);
    expect([...state.used].map(([, notAfter]) => notAfter)).toEqual([NOW_MS + 25 * HOUR_MS]);
    expect([
      isUsed(state, signature('a', 1)),
      isUsed(state, signature('c', 1)),
      isUsed(state, signature('c', 2)),
    ]).toEqual([true, true, false]);
  });

  it('remembers how late the latest of those was that it forgot', () => {
    let state = rememberSignatures(
      INITIAL_SIGNATURE_STATE,
      [signature('late', 10), signature('early', 1)],
      NOW_MS,
    );
    state = rememberSignatures(state, [], NOW_MS + 60 * HOUR_MS);
    expect([state.used.size, state.forgottenMs]).toEqual([0, NOW_MS + 10 * HOUR_MS]);
  });

  it('changes nothing of the state before', () => {
    rememberSignatures(INITIAL_SIGNATURE_STATE, [signature('a', 1)], NOW_MS);
    revokeKey(INITIAL_SIGNATURE_STATE, 'ana');
    expect(INITIAL_SIGNATURE_STATE).toMatchObject({ revoked: new Set(), forgottenMs: -Infinity });
    expect([...INITIAL_SIGNATURE_STATE.used]).toEqual([]);
  });

  // It forgets where a command is accepted: one that is refused changes nothing.
  it('is as one that forgets at once, whatever comes when: it only remembers some for an hour longer', () => {
    const step = fc.record({ afterMinutes: fc.nat(600), hours: fc.nat(6), nonce: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        let state = INITIAL_SIGNATURE_STATE;
        let [atMs, acceptedMs] = [NOW_MS, NOW_MS];
        const used = new Map<string, number>();
        for (const { afterMinutes, hours, nonce } of steps) {
          atMs += afterMinutes * MINUTE_MS;
          const sent = { keyId: 'ana', nonce: `n${nonce}`, notAfter: atMs + hours * HOUR_MS };
          const lately = used.get(sent.nonce) ?? 0;
          if (isUsed(state, sent)) expect(lately).toBeGreaterThanOrEqual(acceptedMs - 25 * HOUR_MS);
          else {
            expect(lately + 24 * HOUR_MS).toBeLessThan(atMs);
            state = rememberSignatures(state, [sent], atMs);
            used.set(sent.nonce, sent.notAfter);
            acceptedMs = atMs;
          }
        }
      }),
    );
  });

  it('of 100 000 signatures is made in a time that grows with their number alone', () => {
    let state = INITIAL_SIGNATURE_STATE;
    for (let n = 0; n < 100_000; n += 1)
      state = rememberSignatures(state, [signature(`n${n}`, 1 + n / 1_000)], NOW_MS + n * 3_600);
    expect(state.used.size).toBeGreaterThan(20_000);
    expect(isUsed(state, signature('n99999', 101))).toBe(true);
  });
});
