import { describe, expect, it } from 'vitest';
import type { MemoryConnection } from '../../../../src/adapters/memory/bus.ts';
import { makeSignature } from '../../../../src/contracts/records.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type {
  ControllerConfig,
  ControllerDeps,
} from '../../../../src/stages/policy-controller/controller.ts';
import { createPolicyControllerStage } from '../../../../src/stages/policy-controller/stage.ts';
import { SESSION_TIMEOUT_MS } from '../../adapters/memory/bus.fixture.ts';
import { type ControlRoom, openControlRoom, publish, rollBack, SCOPE } from './controller.fixture.ts';

interface Options {
  bus?: MemoryConnection;
  config?: Partial<ControllerConfig>;
  deps?: Partial<ControllerDeps>;
}

async function lead(room: ControlRoom, options: Options = {}) {
  const { world } = room;
  const bus = options.bus ?? world.connect();
  const stage = await world.settle(
    createPolicyControllerStage(
      { ...room.config, ...options.config, reconcileMs: 1_000 },
      {
        ...room.deps(bus, options.deps),
        random: seededRandom(1),
        topicDelay: createTopicDelay(),
        bus,
      },
    ),
  );
  await world.clock.advanceBy(50);
  return { stage, bus };
}

const told = (room: ControlRoom): string[] =>
  room.events.map(({ type, term, epoch, commandId }) => [type, term, epoch, commandId].join(' ').trim());

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

  it('sent twice act once', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1));
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
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
      /version number or empty, not "latest"/,
    ],
    ['a rollback to what never was', rollBack({ body: Buffer.from('9') }), /no version 9/],
    ['a type that it does not know', publish(3, { type: 'TUNE' }), /commands of type TUNE are not supported/],
    ['a command without an id', publish(3, { commandId: '' }), /no commandId/],
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

  it('are refused where signatures are asked for: without one, and with one, since nobody can verify it', async () => {
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
    expect(room.events[2]?.reason).toMatch(/cannot verify signatures/);
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
    await lead(room);
    await room.send(publish(1, { actor: 'x'.repeat(900_000) }));
    await room.send(publish(2));
    await room.world.clock.advanceBy(2_000);
    expect(told(room).slice(1)).toEqual(['command-refused 1 0', 'policy-published 1 1 publish-2']);
    expect(room.events[1]?.reason).toMatch(/^TOO_LARGE: /);
    expect(await room.committed()).toBe(2);
  });

  it('have a nameless actor told as unknown', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1, { actor: '' }));
    await room.world.clock.advanceBy(100);
    expect(room.events[1]?.actor).toBe('unknown');
  });
});

describe('a new leader', () => {
  it('replays the log to the same state under a higher term, and writes it into the store', async () => {
    const room = await openControlRoom();
    const first = await lead(room);
    for (const command of [publish(1), publish(2), rollBack(), publish(1, { commandId: 'old' })])
      await room.send(command);
    await room.world.clock.advanceBy(100);
    const { scopes, decided } = first.stage.controller.state;
    await room.world.settle(first.stage.close());
    room.server.empty();
    const second = await lead(room);
    expect(second.stage.controller.state).toEqual({ term: 2, scopes, decided });
    expect(await room.pointer()).toMatchObject({ epoch: 3, term: 2, stable: { version: 1 } });
    expect(await room.document('feed 1')).toBe('feed 1');
    await room.send(publish(3));
    await room.world.clock.advanceBy(100);
    expect(told(room).slice(-2)).toEqual(['leadership-taken 2 0', 'policy-published 2 4 publish-3']);
  });

  it('takes over what the one before did not get done', async () => {
    const room = await openControlRoom();
    const first = await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    first.bus.crash();
    await room.send(publish(2));
    await room.world.clock.advanceBy(100);
    await lead(room);
    await room.world.clock.advanceBy(SESSION_TIMEOUT_MS + 1_000);
    expect(told(room)).toEqual([
      'leadership-taken 1 0',
      'policy-published 1 1 publish-1',
      'leadership-taken 2 0',
      'policy-published 2 2 publish-2',
    ]);
    expect(await room.pointer()).toMatchObject({ epoch: 2, term: 2 });
  });

  it.each<[what: string, options: Options]>([
    [
      'a fleet that fits the policies no more',
      {
        deps: {
          checkPolicy: () => {
            throw new Error('no such pool');
          },
        },
      },
    ],
    ['a demand for signatures', { config: { acceptUnsigned: false } }],
  ])('takes what was decided as decided, also with %s: epochs only rise', async (_name, options) => {
    const room = await openControlRoom();
    const first = await lead(room);
    for (const command of [publish(1), publish(2), rollBack()]) await room.send(command);
    await room.world.clock.advanceBy(100);
    const { scopes } = first.stage.controller.state;
    await room.world.settle(first.stage.close());
    room.server.empty();
    const second = await lead(room, options);
    expect(second.stage.controller.state.scopes).toEqual(scopes);
    expect(await room.pointer()).toMatchObject({ epoch: 3, term: 2, stable: { version: 1 } });
    expect(await room.document('feed 1')).toBe('feed 1');
  });

  it('does not begin before it has read the log, and tries until it can', async () => {
    const room = await openControlRoom();
    const first = await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    await room.world.settle(first.stage.close());
    const bus = room.world.connect();
    let failures = 3;
    const read = bus.read.bind(bus);
    bus.read = (options, onRecords) => {
      if (failures === 0) return read(options, onRecords);
      failures -= 1;
      return Promise.reject(new MillraceError('BUS_UNAVAILABLE', 'it cannot be read now'));
    };
    await lead(room, { bus });
    await room.send(publish(2));
    await room.world.clock.advanceBy(100);
    expect(told(room)).toHaveLength(2);
    await room.world.clock.advanceBy(5_000);
    expect(told(room).slice(2)).toEqual(['leadership-taken 2 0', 'policy-published 2 2 publish-2']);
  });
});

describe('two controllers', () => {
  it('one leads, the other stands by', async () => {
    const room = await openControlRoom();
    await lead(room);
    await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(5_000);
    expect(told(room)).toEqual(['leadership-taken 1 0', 'policy-published 1 1 publish-1']);
  });

  it('the one that lost its session writes nothing more, not even into an emptied store', async () => {
    const room = await openControlRoom();
    const first = await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    first.bus.disconnect();
    const second = await lead(room);
    await room.world.clock.advanceBy(SESSION_TIMEOUT_MS + 1_000);
    await room.send(publish(2));
    await room.world.clock.advanceBy(100);
    first.bus.reconnect();
    await room.world.clock.advanceBy(100);
    await room.world.settle(second.stage.close());
    await room.world.clock.advanceBy(1_000);
    expect(told(room).filter((text) => text.startsWith('leadership'))).toEqual([
      'leadership-taken 1 0',
      'leadership-taken 2 0',
      'leadership-taken 3 0',
    ]);
    expect(await room.pointer()).toMatchObject({ epoch: 2 });
    expect(first.stage.controller.state.term).toBe(3);
  });
});

describe('a store that is away', () => {
  it('gets the decision as soon as it is back; the log has it before, and nothing is committed until then', async () => {
    const room = await openControlRoom();
    await lead(room);
    room.server.stop();
    await room.send(publish(1));
    await room.world.clock.advanceBy(30_000);
    expect(told(room)).toContain('policy-published 1 1 publish-1');
    expect(await room.committed()).toBe(-1);
    room.server.start();
    await room.world.clock.advanceBy(1_000);
    expect(await room.pointer()).toMatchObject({ epoch: 1, term: 1 });
    expect(await room.committed()).toBe(1);
  });

  it('does not hold up a controller that leaves, and loses no decision', async () => {
    const room = await openControlRoom();
    const { stage } = await lead(room);
    room.server.stop();
    await room.send(publish(1));
    await room.send(publish(2));
    await room.world.clock.advanceBy(5_000);
    const startedMs = room.world.clock.monotonicMs();
    await room.world.settle(stage.close());
    expect(room.world.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(1_000);
    room.server.start();
    await lead(room);
    await room.world.clock.advanceBy(2_000);
    expect(await room.pointer()).toMatchObject({ epoch: 2, stable: { version: 2 } });
    const accepted = room.events.filter(({ type }) => type === 'policy-published');
    expect(new Set(accepted.map(({ eventId }) => eventId)).size).toBe(2);
    expect(await room.committed()).toBe(2);
  });

  it('and then emptied is seeded again', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    room.server.empty();
    await room.world.clock.advanceBy(1_500);
    expect(await room.pointer()).toMatchObject({ epoch: 1, stable: { version: 1 } });
    expect(await room.document('feed 1')).toBe('feed 1');
  });

  it('and then back from an old backup is brought up to date', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    const restore = room.server.backup();
    await room.send(publish(2));
    await room.world.clock.advanceBy(100);
    restore();
    await room.world.clock.advanceBy(1_500);
    expect(await room.pointer()).toMatchObject({ epoch: 2, stable: { version: 2 } });
  });

  it('is asked again and again, but never by more than one reconciliation', async () => {
    const room = await openControlRoom();
    let asked = 0;
    const { stage } = await lead(room, {
      deps: {
        store: {
          ...room.deps(room.outside).store,
          readPointer: () => {
            asked += 1;
            return new Promise(() => {});
          },
          putDocument: async () => {},
          writePointer: async () => ({ status: 'applied' }),
        },
      },
    });
    await room.send(publish(1));
    await room.world.clock.advanceBy(60_000);
    expect(asked).toBe(1);
    await room.world.settle(stage.close());
  });
});

describe('a reseed', () => {
  it('raises the epoch and writes what is live once more', async () => {
    const room = await openControlRoom();
    await lead(room);
    await room.send(publish(1));
    await room.send(rollBack({ type: 'RESEED', commandId: 'seed' }));
    await room.world.clock.advanceBy(100);
    expect(await room.pointer()).toMatchObject({ epoch: 2, stable: { version: 1 } });
  });
});

it('a store that is ahead by what the leader before could not commit is no alarm', async () => {
  const room = await openControlRoom();
  const { world, server } = room;
  const first = await lead(room);
  await room.send(publish(1));
  await world.clock.advanceBy(100);
  await world.settle(first.stage.close());
  const stable = { digest: 'digest of feed 2', name: 'feed', version: 2 };
  await world.settle(server.connect().writePointer(SCOPE, { epoch: 2, term: 1, stable }));
  await lead(room);
  await room.send(publish(2));
  await world.clock.advanceBy(100);
  expect(world.telemetry.logs.filter(({ level }) => level === 'error')).toEqual([]);
  expect(world.telemetry.logs.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: 'the store is ahead of the log' },
  ]);
  expect(await room.pointer()).toMatchObject({ epoch: 2, stable });
});

it('a store with a newer pointer of another controller is an alarm', async () => {
  const room = await openControlRoom();
  const { world, server } = room;
  await lead(room);
  const stable = { digest: 'other', name: 'feed', version: 9 };
  await world.settle(server.connect().writePointer(SCOPE, { epoch: 5, term: 7, stable }));
  await room.send(publish(1));
  await world.clock.advanceBy(100);
  expect(world.telemetry.logs.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'the store holds a newer pointer: another controller leads' },
  ]);
  expect(await room.pointer()).toMatchObject({ epoch: 5, stable });
});
