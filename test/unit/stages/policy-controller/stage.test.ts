import { describe, expect, it } from 'vitest';
import type { MemoryConnection } from '../../../../src/adapters/memory/bus.ts';
import { memorySchemaRegistry } from '../../../../src/adapters/memory/schema-registry.ts';
import { createCodecs } from '../../../../src/contracts/codec.ts';
import { recordTopics } from '../../../../src/contracts/topic-specs.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { CATALOGUE_SCOPE } from '../../../../src/core/model/catalogue.ts';
import { SESSION_TIMEOUT_MS } from '../../adapters/memory/bus.fixture.ts';
import { POOLS, topics } from '../records.fixture.ts';
import {
  type ControlRoom,
  type LeadOptions,
  lead,
  openControlRoom,
  publish,
  rollBack,
  SCOPE,
  told,
} from './controller.fixture.ts';

describe('a new leader', () => {
  it('replays the log to the same state under a higher term, and writes it into the store', async () => {
    const room = await openControlRoom();
    const first = await lead(room);
    for (const command of [publish(1), publish(2), rollBack()]) await room.send(command);
    await room.world.clock.advanceBy(100);
    const state = first.stage.controller.state;
    await room.world.settle(first.stage.close());
    room.server.empty();
    const second = await lead(room);
    expect(second.stage.controller.state).toEqual({ ...state, term: 2 });
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

  it.each<[what: string, options: LeadOptions]>([
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

  it.each([
    // Whatever the store had at the epoch of version 1 is answered by another.
    ['a policy of the log', SCOPE, 3],
    ['the catalogue', CATALOGUE_SCOPE, 2],
  ])(
    'takes a term above that in the store of %s, where the log has lost its own',
    async (_, scope, epoch) => {
      const room = await openControlRoom();
      const store = room.server.connect();
      const stable = { digest: 'sha256:0', name: 'feed', version: 0 };
      await room.world.settle(store.writePointer(scope, { epoch: 1, term: 7, stable, canary: undefined }));
      await room.send(publish(1));
      const { stage } = await lead(room);
      expect(stage.controller.state.term).toBe(8);
      await room.send(publish(2));
      await room.world.clock.advanceBy(100);
      expect(await room.pointer()).toMatchObject({ epoch, term: 8, stable: { version: 2 } });
    },
  );

  it('has the text of a version as it was accepted, whatever was refused under its digest', async () => {
    const room = await openControlRoom();
    await lead(room);
    // Digests here are of the first 40 characters.
    const text = `feed 1 ${'x'.repeat(40)}`;
    for (const command of [
      publish(1, { body: Buffer.from(`${text} accepted`) }),
      publish(2),
      publish(1, { body: Buffer.from(`${text} refused`), commandId: 'again' }),
    ])
      await room.send(command);
    await room.world.clock.advanceBy(100);
    room.server.empty();
    await room.send(rollBack());
    await room.world.clock.advanceBy(100);
    expect(room.events.map(({ accepted }) => accepted).slice(-2)).toEqual([false, true]);
    expect(await room.document(text)).toBe(`${text} accepted`);
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

describe('a control log that cannot be read', () => {
  /** Codecs of a registry that lost its data, gave other ids, and has the old ones again once `isRestored`. */
  async function afterLoss({ world: { clock } }: ControlRoom) {
    const registry = memorySchemaRegistry();
    for (let n = 0; n < 40; n += 1)
      await registry.register(`other-${n}-value`, `{"type":"record","name":"O${n}","fields":[]}`, 'BACKWARD');
    const before = memorySchemaRegistry();
    const all = recordTopics({ topics, tenants: [], pools: POOLS });
    await createCodecs({ registry: before, clock }).register(all);
    const state = { isRestored: false };
    const schemaById = async (id: number) => (state.isRestored ? before.schemaById(id) : undefined);
    const forgetful = createCodecs({ registry: { ...registry, schemaById }, clock });
    await forgetful.register(all);
    return { codecs: forgetful, state };
  }

  /** As the versions wrote that knew no fingerprints. */
  function busWithoutHeaders(room: ControlRoom): MemoryConnection {
    const bus = room.world.connect();
    const produce = bus.produce.bind(bus);
    bus.produce = (record, onStored) => produce({ ...record, headers: {} }, onStored);
    return bus;
  }

  it('keeps a controller from the lead, which says so until it can be read, and refuses nothing meanwhile', async () => {
    const room = await openControlRoom();
    const first = await lead(room, { bus: busWithoutHeaders(room) });
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    await room.world.settle(first.stage.close());
    const { codecs, state } = await afterLoss(room);
    const { stage } = await lead(room, { deps: { codecs } });
    await room.sendBytes(Buffer.from('not a command'));
    await room.world.clock.advanceBy(12_000);
    expect(stage.unready()).toContain(
      'has 2 records that this controller cannot read, the first at offset 0',
    );
    const { telemetry, clock } = room.world;
    expect(telemetry.value('millrace_control_log_unreadable')).toBe(1);
    const alarms = telemetry.logs.filter(({ message }) => message === 'this controller cannot lead');
    expect(alarms.map(({ level }) => level)).toEqual(['error', 'error', 'error']);
    expect(told(room)).toEqual(['leadership-taken 1 0', 'policy-published 1 1 publish-1']);
    state.isRestored = true;
    await clock.advanceBy(35_000);
    expect(stage.unready()).toBeUndefined();
    expect(telemetry.value('millrace_control_log_unreadable')).toBe(0);
    expect(told(room).slice(2)).toEqual(['leadership-taken 2 0', 'command-refused 2 0']);
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
  await world.settle(server.connect().writePointer(SCOPE, { epoch: 2, term: 1, stable, canary: undefined }));
  await lead(room);
  await room.send(publish(2));
  await world.clock.advanceBy(100);
  expect(world.telemetry.logs.filter(({ level }) => level === 'error')).toEqual([]);
  expect(world.telemetry.logs.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: 'the store is ahead of the log; a higher epoch answers it' },
  ]);
  expect(told(room).slice(-3)).toEqual([
    'leadership-taken 2 0',
    'store-reseeded 2 3',
    'policy-published 2 4 publish-2',
  ]);
  expect(await room.pointer()).toMatchObject({ epoch: 4, term: 2, stable });
});

it('a store with a newer pointer of another controller is an alarm', async () => {
  const room = await openControlRoom();
  const { world, server } = room;
  await lead(room);
  const stable = { digest: 'other', name: 'feed', version: 9 };
  await world.settle(server.connect().writePointer(SCOPE, { epoch: 5, term: 7, stable, canary: undefined }));
  await room.send(publish(1));
  await world.clock.advanceBy(100);
  expect(world.telemetry.logs.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'the store holds a newer pointer: another controller leads' },
  ]);
  expect(await room.pointer()).toMatchObject({ epoch: 5, stable });
});
