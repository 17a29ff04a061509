import { describe, expect, it } from 'vitest';
import {
  INITIAL_SIGNATURE_STATE,
  isUsed,
  rememberSignatures,
  revocationRefusal,
  revokeKey,
} from '../../../../src/core/control/signature-state.ts';
import { HOUR_MS, NOW_MS, person, ringOf } from './keys.fixture.ts';

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
    expect([...state.used.values()]).toEqual([NOW_MS + 25 * HOUR_MS]);
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
    expect(INITIAL_SIGNATURE_STATE).toEqual({ revoked: new Set(), used: new Map(), forgottenMs: -Infinity });
  });
});
