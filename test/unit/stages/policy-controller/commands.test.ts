import { describe, expect, it } from 'vitest';
import { makeSignature } from '../../../../src/contracts/records.ts';
import { openCodecs } from '../records.fixture.ts';
import { checkPolicy, lead, openControlRoom, publish, rollBack, SCOPE, told } from './controller.fixture.ts';

describe('commands', () => {
  it('are decided in their order: the log has the event, and the store the pointer and the text', async () => {
    const room = await openControlRoom();
    await lead(room);
    for (const command of [publish(1), publish(2), rollBack()]) await room.send(command);
    await room.world.clock.advanceBy(100);
    expect(told(room)).toEqual([
      'leadership-taken 1 0',
      'policy-published 1 1 publish-1',
      'policy-published 1 2 publish-2',
      'policy-rolled-back 1 3 roll-back',
    ]);
    expect(await room.pointer()).toEqual({
      epoch: 3,
      term: 1,
      stable: { digest: 'digest of feed 1', name: 'feed', version: 1 },
    });
    expect([await room.document('feed 1'), await room.document('feed 2')]).toEqual(['feed 1', 'feed 2']);
    expect(await room.committed()).toBe(3);
  });

  it('leave an event with who, what, when and the digest of the command', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    const [taken, event] = room.events;
    expect(taken).toMatchObject({
      eventId: 'term-1',
      scope: 'controller',
      actor: 'controller-1',
      accepted: true,
    });
    expect(event).toMatchObject({
      eventId: '0-policy-published',
      scope: SCOPE,
      actor: 'ana',
      commandOffset: 0,
      commandDigest: expect.stringMatching(/^digest of /),
      accepted: true,
      reason: null,
    });
    expect(event?.occurredAt).toBeGreaterThan(Date.UTC(2026, 0, 1));
    expect(JSON.parse(event?.evidence ?? '')).toMatchObject({ type: 'policy-published', epoch: 1 });
  });

  it('sent twice act once, and are checked once: checking may take long', async () => {
    const room = await openControlRoom();
    let checks = 0;
    const checked = (bytes: Uint8Array) => {
      checks += 1;
      return checkPolicy(bytes);
    };
    await lead(room, { deps: { checkPolicy: checked } });
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    const before = checks;
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    expect(checks).toBe(before);
    expect(told(room)).toHaveLength(2);
    expect(await room.committed()).toBe(2);
  });

  it.each([
    [
      'a policy that does not pass its check',
      publish(1, { body: Buffer.from('feed') }),
      /feed has no version/,
    ],
    [
      'a policy of another scope',
      publish(1, { scope: 'policy/ads' }),
      /scope must be policy\/feed, not policy\/ads/,
    ],
    ['an older version', publish(1, { commandId: 'again' }), /older than version 2/],
    [
      'a rollback to no number',
      rollBack({ body: Buffer.from('latest') }),
      /ROLL_BACK does not take this body .*"latest"/,
    ],
    ['a rollback to what never was', rollBack({ body: Buffer.from('9') }), /no version 9/],
    [
      'a type that it does not know',
      publish(3, { type: 'SET_TARGETS' }),
      /commands of type SET_TARGETS are not supported/,
    ],
    ['a command without an id', publish(3, { commandId: '' }), /no commandId/],
    [
      'a command with a long id',
      publish(3, { commandId: 'x'.repeat(129) }),
      /^the command's commandId has 129 characters; allowed: at most 128$/,
    ],
    [
      'a command with a long scope',
      publish(3, { scope: 'x'.repeat(300_000) }),
      /scope has 300000 characters/,
    ],
    ['a command with a long actor', publish(3, { actor: 'x'.repeat(200) }), /actor has 200 characters/],
  ])('are refused with a reason, and change nothing: %s', async (_name, command, reason) => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(2));
    await room.send(command);
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({
      type: 'command-refused',
      accepted: false,
      reason: expect.stringMatching(reason),
      commandOffset: 1,
    });
    expect((await room.pointer())?.epoch).toBe(1);
    expect(await room.committed()).toBe(2);
  });

  it('without an id are each refused: none is taken for a repetition', async () => {
    const room = await openControlRoom();
    await lead(room);
    for (const version of [1, 2]) await room.send(publish(version, { commandId: '' }));
    await room.world.clock.advanceBy(100);
    expect(room.events.map(({ type }) => type)).toEqual([
      'leadership-taken',
      'command-refused',
      'command-refused',
    ]);
  });

  it('are refused where signatures are asked for: without one, and with one where there is no key to verify it', async () => {
    const room = await openControlRoom();
    await lead(room, { config: { acceptUnsigned: false } });
    const signature = makeSignature({
      keyId: 'k',
      notAfter: 0,
      nonce: 'n',
      version: 1,
      bytes: Buffer.alloc(64),
    });
    await room.send(publish(1));
    await room.send(publish(2, { signature }));
    await room.world.clock.advanceBy(100);
    expect(told(room)).toEqual([
      'leadership-taken 1 0',
      'command-refused 1 0 publish-1',
      'command-refused 1 0 publish-2',
    ]);
    expect(room.events[1]?.reason).toMatch(/not signed/);
    expect(room.events[2]?.reason).toMatch(/no key to verify signatures with/);
  });

  it('that cannot be read are told in the log, and the next one is decided', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.sendBytes(Buffer.from('no frame'));
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    expect(told(room)).toEqual([
      'leadership-taken 1 0',
      'command-refused 1 0',
      'policy-published 1 1 publish-1',
    ]);
    expect(room.events[1]).toMatchObject({
      scope: 'control',
      actor: 'unknown',
      reason: expect.stringMatching(/^NO_FRAME: /),
    });
  });

  it('whose event is too large for the log are told in short, and the next one is decided', async () => {
    const room = await openControlRoom();
    await lead(room, { deps: { codecs: await openCodecs({ bytesMax: 3_000, envelopeBytesMax: 0 }) } });
    await room.send(publish(1, { body: Buffer.alloc(2_000, 'x') }));
    await room.send(publish(2));
    await room.world.clock.advanceBy(2_000);
    expect(told(room).slice(1)).toEqual(['command-refused 1 0', 'policy-published 1 1 publish-2']);
    expect(room.events[1]?.reason).toMatch(/^TOO_LARGE: /);
    expect(await room.committed()).toBe(2);
  });

  it('with an id that is too long are told without it', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1, { commandId: 'x'.repeat(400_000), scope: 'y'.repeat(400_000) }));
    await room.world.clock.advanceBy(100);
    expect(room.events[1]).toMatchObject({ commandId: '', scope: 'control', actor: 'unknown' });
    expect(room.events[1]?.reason).toMatch(/commandId has 400000 characters/);
  });

  it('have a nameless actor told as unknown', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1, { actor: '' }));
    await room.world.clock.advanceBy(100);
    expect(room.events[1]?.actor).toBe('unknown');
  });
});
