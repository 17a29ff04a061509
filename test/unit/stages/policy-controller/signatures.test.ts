import { describe, expect, it } from 'vitest';
import type { ControlCommand } from '../../../../src/contracts/records.ts';
import {
  coSigned,
  HOUR_MS,
  type Person,
  person,
  ringOf,
  signed,
  verify,
} from '../../core/control/keys.fixture.ts';
import { type ControlRoom, lead, openControlRoom, publish } from './controller.fixture.ts';

const ana = person('ana', { scopes: ['policy/*', 'keys'] });
const ben = person('ben', { scopes: ['policy/*', 'keys'] });
const tuner = person('tuner', { role: 'controller' });
const strict = {
  config: { acceptUnsigned: false },
  deps: { signatures: { keys: ringOf(ana, ben, tuner), verify } },
};

/** Signed for an hour from now on, by the room's clock. */
function sign(
  room: ControlRoom,
  command: ControlCommand,
  by: Person,
  terms: { nonce?: string; notAfterMs?: number } = {},
) {
  return signed(command, by, { notAfterMs: room.world.clock.wallMs() + HOUR_MS, ...terms });
}

function revoke(keyId: string): ControlCommand {
  const body = Buffer.from(JSON.stringify({ keyId }));
  return publish(0, { type: 'REVOKE_KEY', scope: 'keys', commandId: `revoke-${keyId}`, body });
}

/** Of each command that was decided: its id, and why it was refused. */
const decided = (room: ControlRoom): string[] =>
  room.events
    .filter(({ commandId }) => commandId !== '')
    .map(({ commandId, accepted, reason }) => (accepted ? commandId : `${commandId}: ${reason}`));

async function send(room: ControlRoom, ...commands: readonly ControlCommand[]): Promise<void> {
  for (const command of commands) await room.send(command);
  await room.world.clock.advanceBy(100);
}

describe('signed commands', () => {
  it('are decided in the name of the key, whoever claims to have sent them', async () => {
    const room = await openControlRoom();
    await lead(room, strict);
    await send(room, sign(room, publish(1, { actor: 'the director' }), ben));
    expect(room.events.at(-1)).toMatchObject({ accepted: true, actor: 'ben', commandId: 'publish-1' });
    const notAfterMs = room.world.clock.wallMs() + HOUR_MS;
    await send(room, coSigned(sign(room, publish(2), ana), ben, { notAfterMs }));
    expect(room.events.at(-1)).toMatchObject({ accepted: true, actor: 'ana and ben' });
    await send(room, publish(3, { actor: 'the director' }));
    expect(room.events.at(-1)).toMatchObject({ accepted: false, actor: 'the director (not verified)' });
  });

  it('are refused in the name of the key for what their body is, and of the key that is claimed where it does not hold', async () => {
    const room = await openControlRoom();
    await lead(room, strict);
    const body = Buffer.from('no policy');
    await send(room, sign(room, publish(1, { actor: '', body }), ana));
    expect(room.events.at(-1)).toMatchObject({ accepted: false, actor: 'ana' });
    await send(room, sign(room, publish(1, { actor: 'the director', commandId: 'other', body }), ana));
    expect(room.events.at(-1)).toMatchObject({ accepted: false, actor: 'ana' });
    await send(room, { ...sign(room, publish(2, { actor: '' }), ben), body });
    expect(room.events.at(-1)).toMatchObject({ accepted: false, actor: 'ben (not verified)' });
    await send(room, publish(3, { actor: '' }));
    expect(room.events.at(-1)).toMatchObject({ accepted: false, actor: 'unknown (not verified)' });
  });

  it.each([
    ['PUBLISH_POLICY', 'millrace policy publish --key'],
    ['PUBLISH_MODEL', 'millrace model publish --key'],
    ['ABORT', 'millrace policy rollout abort --key'],
    ['REVOKE_KEY', 'millrace control send --key'],
  ] as const)('say how to sign where they are not: %s', async (type, advice) => {
    const room = await openControlRoom();
    await lead(room, strict);
    await send(room, publish(1, { type }));
    expect(room.events.at(-1)?.reason).toMatch(new RegExp(`; sign it: ${advice}$`));
  });

  it('use up their nonces, and those of the second signature, for the next leader as well', async () => {
    const room = await openControlRoom();
    const first = await lead(room, strict);
    const notAfterMs = room.world.clock.wallMs() + HOUR_MS;
    await send(room, coSigned(sign(room, publish(1), ana, { nonce: 'a' }), ben, { notAfterMs, nonce: 'b' }));
    await send(room, sign(room, publish(2), ana, { nonce: 'a' }));
    await room.world.settle(first.stage.close());
    await lead(room, strict);
    await send(
      room,
      sign(room, publish(3), ana, { nonce: 'a' }),
      sign(room, publish(4), ben, { nonce: 'b' }),
    );
    await send(room, sign(room, publish(5), ana, { nonce: 'c' }));
    const replay = 'the nonce of the signature was used before: the command is a replay';
    expect(decided(room)).toEqual([
      'publish-1',
      `publish-2: ${replay}`,
      `publish-3: ${replay}`,
      `publish-4: ${replay}`,
      'publish-5',
    ]);
  });

  it('do not use up the nonce of somebody else by a signature that does not hold', async () => {
    const room = await openControlRoom();
    await lead(room, strict);
    const forged = sign(
      room,
      publish(1),
      { ...ben, signer: { ...ben.signer, keyId: 'ana' } },
      { nonce: 'a' },
    );
    await send(room, { ...forged, commandId: 'forged' }, sign(room, publish(2), ana, { nonce: 'a' }));
    expect(decided(room)).toEqual([expect.stringMatching(/^forged: .*does not fit/), 'publish-2']);
  });

  it('count by when they arrived on the topic, not by when a controller came to them', async () => {
    const room = await openControlRoom();
    await room.send(sign(room, publish(1), ana));
    await room.world.clock.advanceBy(2 * HOUR_MS);
    await room.send(signed(publish(2), ana, { notAfterMs: room.world.clock.wallMs() - 1_000 }));
    await lead(room, strict);
    await room.world.clock.advanceBy(100);
    expect(decided(room)).toEqual([
      'publish-1',
      expect.stringMatching(/^publish-2: the signature was valid until/),
    ]);
  });

  it('of a revoked key count up to the place of the revocation', async () => {
    const room = await openControlRoom();
    await room.send(sign(room, publish(1), ana));
    await room.send(sign(room, revoke('ana'), ben));
    await room.send(sign(room, publish(2), ana));
    const first = await lead(room, strict);
    await room.world.clock.advanceBy(100);
    await room.world.settle(first.stage.close());
    await lead(room, strict);
    await send(room, sign(room, publish(3), ana), sign(room, publish(4), ben));
    expect(decided(room)).toEqual([
      'publish-1',
      'revoke-ana',
      'publish-2: the key ana is revoked',
      'publish-3: the key ana is revoked',
      'publish-4',
    ]);
    expect((await room.pointer())?.stable.version).toBe(4);
  });

  it("of a controller's key decide no policy", async () => {
    const room = await openControlRoom();
    await lead(room, strict);
    await send(room, sign(room, publish(1), tuner), sign(room, revoke('ben'), { ...tuner }));
    expect(decided(room)).toEqual([
      expect.stringMatching(/^publish-1: .*a controller's, and may not sign PUBLISH_POLICY/),
      expect.stringMatching(/^revoke-ben: .*may not sign for keys/),
    ]);
  });

  it('to revoke need a body that names a key', async () => {
    const room = await openControlRoom();
    await lead(room, strict);
    await send(room, sign(room, { ...revoke('ana'), body: Buffer.from('ana') }, ben));
    expect(decided(room)).toEqual([
      expect.stringMatching(/^revoke-ana: REVOKE_KEY does not take this body .*\{"keyId": "…"\}/),
    ]);
  });
});
