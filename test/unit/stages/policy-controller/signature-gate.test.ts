import { describe, expect, it } from 'vitest';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import { SignatureGate } from '../../../../src/stages/policy-controller/signature-gate.ts';
import {
  command,
  coSigned,
  NOW_MS,
  person,
  ringOf,
  signed,
  verify,
} from '../../core/control/keys.fixture.ts';

const ana = person('ana');
const ben = person('ben');
const sent = coSigned(signed(command(), ana), ben);
const by = { commandId: sent.commandId, scope: sent.scope, actor: 'ana' };
const published: ControllerEvent = {
  type: 'policy-published',
  ...by,
  policy: { digest: 'd', name: 'starter', version: 2 },
  live: true,
  start: undefined,
  epoch: 1,
};

function gateAfter(...events: ControllerEvent[]): SignatureGate {
  const gate = new SignatureGate(false, { keys: ringOf(ana, ben), verify });
  for (const event of events) gate.remember(sent, event, NOW_MS);
  return gate;
}

const statusOf = (gate: SignatureGate, what = sent): string => gate.check(what, NOW_MS).status;

describe('the signatures of a command', () => {
  it('are used up by its event, both of them', () => {
    expect(statusOf(gateAfter())).toBe('ok');
    expect(statusOf(gateAfter(published))).toBe('refused');
    const nonce = sent.coSignature?.nonce ?? '';
    expect(statusOf(gateAfter(published), signed(command({ commandId: 'c-2' }), ben, { nonce }))).toBe(
      'refused',
    );
  });

  it.each<[string, ControllerEvent]>([
    ['a refusal', { type: 'command-refused', ...by, reason: 'later' }],
    [
      'what followed from the state by itself, meanwhile',
      { type: 'store-reseeded', ...by, commandId: '', epoch: 1 },
    ],
    ['the event of another command', { ...published, commandId: 'another' }],
    ['a leadership', { type: 'leadership-taken', term: 3 }],
  ])('are not used up by %s', (_, event) => {
    expect(statusOf(gateAfter(event))).toBe('ok');
  });

  it('count again for one that reads the log from its beginning', () => {
    const gate = gateAfter(published);
    gate.forget();
    expect(statusOf(gate)).toBe('ok');
  });

  it('are void once their key was taken out', () => {
    const gate = gateAfter();
    const revoked = { ...command({ commandId: 'r', type: 'REVOKE_KEY', scope: 'keys' }) };
    gate.remember(revoked, { type: 'key-revoked', ...by, commandId: 'r', keyId: 'ben' }, NOW_MS);
    expect([statusOf(gate), statusOf(gate, signed(command(), ana))]).toEqual(['refused', 'ok']);
  });
});
