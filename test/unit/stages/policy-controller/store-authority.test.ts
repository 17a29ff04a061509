import { describe, expect, it } from 'vitest';
import { makeControlCommand } from '../../../../src/contracts/records.ts';
import { catalogueEpoch } from '../../../../src/core/control/published-models.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { CATALOGUE_SCOPE } from '../../../../src/core/model/catalogue.ts';
import type { PointerWrite, PolicyPointer } from '../../../../src/ports/control-store.ts';
import { PointerWriter } from '../../../../src/stages/policy-controller/pointer-writer.ts';
import { publishedModel, sha256 } from '../../core/model/model.fixture.ts';
import { changed } from '../request-router/policy-source.fixture.ts';
import { type ControlRoom, lead, openControlRoom, publish, SCOPE, told } from './controller.fixture.ts';
import { expectExplained, rolling } from './rollout.fixture.ts';

const RECONCILED_MS = 1_500;
const LOST = 'the control store lost what a pointer needs; written again';
const deps = { digest: sha256 };
const v2 = { digest: sha256('feed 2'), name: 'feed', version: 2 };
const other = { digest: 'sha256:other', name: 'feed', version: 9 };

const publishModel = (version: string) =>
  makeControlCommand({
    commandId: `model-${version}`,
    scope: 'model/ranker',
    type: 'PUBLISH_MODEL',
    body: Buffer.from(JSON.stringify(publishedModel(version))),
    actor: 'ana',
  });

/** What a leader before still has in hand. */
async function writeLate(
  room: ControlRoom,
  change: Partial<PolicyPointer>,
  scope = SCOPE,
): Promise<PointerWrite> {
  const stored = await room.pointer(scope);
  const pointer = { epoch: 1, term: 1, stable: other, canary: undefined, ...stored, ...change };
  return room.world.settle(room.server.connect().writePointer(scope, pointer));
}

/** Two leaders, one after the other; nothing rolls out. */
async function replaced(between: (room: ControlRoom) => Promise<unknown> = async () => undefined) {
  const room = await openControlRoom();
  const first = await lead(room, { deps });
  for (const command of [publish(1), publishModel('3')]) await room.send(command);
  await room.world.clock.advanceBy(100);
  await room.world.settle(first.stage.close());
  await between(room);
  const second = await lead(room, { deps });
  await room.world.clock.advanceBy(100);
  return { room, second };
}

/** The store has what the log says, also of whatever is decided from now on. */
async function expectAgreed(room: ControlRoom, { stage }: Awaited<ReturnType<typeof lead>>): Promise<void> {
  for (const more of [undefined, publish(7), publishModel('7')]) {
    if (more !== undefined) await room.send(more);
    await room.world.clock.advanceBy(more === undefined ? RECONCILED_MS : 100);
    const { state } = stage.controller;
    const { term } = state;
    const { epoch, live } = state.scopes.get(SCOPE) ?? { epoch: 0, live: undefined };
    expect(await room.pointer()).toMatchObject({ epoch, term, stable: live });
    expect(await room.pointer(CATALOGUE_SCOPE)).toMatchObject({ epoch: catalogueEpoch(state), term });
  }
}

describe('a leader that was replaced while nothing rolled out', () => {
  it.each([SCOPE, CATALOGUE_SCOPE])(
    'can write nothing more into %s, and keeps out nothing',
    async (scope) => {
      const { room } = await replaced();
      const taken = await room.pointer(scope);
      expect(taken).toMatchObject({ term: 2 });
      for (const late of [{ epoch: 50 }, { epoch: 50, stable: other }, {}])
        expect(await writeLate(room, { ...late, term: 1 }, scope)).toEqual({
          status: 'stale',
          current: taken,
        });
      expect(told(room)).toHaveLength(4);
      await room.send(publish(2));
      await room.world.clock.advanceBy(100);
      expect(await room.pointer()).toMatchObject({ epoch: 2, term: 2, stable: v2 });
      expect(room.world.telemetry.logs.filter(({ level }) => level === 'warn')).toEqual([]);
    },
  );

  it.each<[what: string, late: (room: ControlRoom) => Promise<unknown>, above: number]>([
    ['the next epoch', (room) => writeLate(room, { epoch: 2, stable: other }), 2],
    ['an epoch far ahead', (room) => writeLate(room, { epoch: 40, stable: other }), 40],
    ['a higher epoch that means the same', (room) => writeLate(room, { epoch: 5 }), 5],
  ])('wrote %s before it was: a higher one answers it', async (_what, late, above) => {
    const { room, second } = await replaced(late);
    expect(told(room).slice(-2)).toEqual(['leadership-taken 2 0', `store-reseeded 2 ${above + 1}`]);
    expect(await room.pointer()).toMatchObject({ epoch: above + 1, term: 2, stable: { version: 1 } });
    expectExplained(room);
    await room.world.settle(second.stage.close());
    const third = await lead(room, { deps });
    expect(third.stage.controller.state.scopes).toEqual(second.stage.controller.state.scopes);
  });

  it('wrote a catalogue before it was: a higher epoch answers it, for the next leader too', async () => {
    const { room, second } = await replaced((before) =>
      writeLate(before, { epoch: 20, stable: other }, CATALOGUE_SCOPE),
    );
    const answered = await room.pointer(CATALOGUE_SCOPE);
    expect(answered).toMatchObject({ epoch: 21, term: 2, stable: { name: CATALOGUE_SCOPE } });
    expect(told(room).at(-1)).toBe('store-reseeded 2 21');
    expectExplained(room);
    await room.world.settle(second.stage.close());
    const third = await lead(room, { deps });
    await room.world.clock.advanceBy(100);
    expect(await room.pointer(CATALOGUE_SCOPE)).toEqual({ ...answered, term: 3 });
    expect(told(room).at(-1)).toBe('leadership-taken 3 0');
    await expectAgreed(room, third);
  });

  it('wrote into the store after that was emptied: found by the next comparison', async () => {
    const { room, second } = await replaced();
    for (const scope of [SCOPE, CATALOGUE_SCOPE]) {
      room.server.empty();
      await writeLate(room, { epoch: 30, stable: other }, scope);
      await room.world.clock.advanceBy(RECONCILED_MS);
      expect((await room.pointer(scope))?.epoch).toBeGreaterThan(30);
    }
    await expectAgreed(room, second);
  });
});

describe('a store that differs from the log at the same epoch', () => {
  it.each<[what: string, change: Partial<PolicyPointer>, epoch: number]>([
    ['by its policy', { stable: other }, 2],
    ['by its version alone', { stable: { digest: sha256('feed 1'), name: 'feed', version: 3 } }, 2],
    ['by its term alone', {}, 1],
  ])('%s is brought to agree', async (_what, change, epoch) => {
    const { room, second } = await replaced();
    const stored = await room.pointer();
    room.server.empty();
    await writeLate(room, { ...stored, term: 1, ...change });
    await room.world.clock.advanceBy(RECONCILED_MS);
    expect(await room.pointer()).toMatchObject({ epoch, term: 2, stable: { version: 1 } });
    await expectAgreed(room, second);
  });

  it('by its canary is brought to agree', async () => {
    const scene = await rolling();
    const { room, leading } = scene;
    const stored = await room.pointer();
    if (stored?.canary === undefined) throw new Error('there is no canary');
    room.server.empty();
    await writeLate(room, { ...stored, canary: { ...stored.canary, mode: 'canary', percent: 100 } });
    await room.world.clock.advanceBy(RECONCILED_MS);
    expect(await room.pointer()).toMatchObject({ epoch: stored.epoch + 1, canary: { mode: 'shadow' } });
    expect(leading.stage.controller.state.scopes.get(SCOPE)?.epoch).toBe(stored.epoch + 1);
    expectExplained(room);
  });

  it('and cannot be topped is told, once, and left alone', async () => {
    const { room } = await replaced();
    room.server.empty();
    await writeLate(room, { epoch: Number.MAX_SAFE_INTEGER, stable: other });
    await room.world.clock.advanceBy(10 * RECONCILED_MS);
    expect(told(room)).toHaveLength(4);
    expect(room.world.telemetry.logs.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'the store holds the highest epoch that there is; delete that key' },
    ]);
  });
});

describe('a store that lost', () => {
  it('the sense of a pointer has it again', async () => {
    const room = await openControlRoom();
    const store = room.server.connect();
    let isGarbled = false;
    const garbled = changed(store, {
      async readPointer(scope) {
        if (isGarbled) throw new MillraceError('MALFORMED', 'that is no pointer');
        return store.readPointer(scope);
      },
      async writePointer(scope, pointer) {
        isGarbled = false;
        return store.writePointer(scope, pointer);
      },
    });
    await lead(room, { deps: { ...deps, store: garbled } });
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    isGarbled = true;
    await room.world.clock.advanceBy(RECONCILED_MS);
    expect(isGarbled).toBe(false);
  });

  it('the sense of one pointer hides no term of the others', async () => {
    const room = await openControlRoom();
    const { clock, telemetry } = room.world;
    const store = changed(room.server.connect(), {
      async readPointer(scope) {
        if (scope === 'garbled') throw new MillraceError('MALFORMED', 'that is no pointer');
        return { epoch: 1, term: 7, stable: other, canary: undefined };
      },
    });
    const proofs = { envelopeOf: () => undefined, rootOf: () => undefined, revocations: () => undefined };
    const writer = new PointerWriter({ store, clock, telemetry, document: () => undefined, proofs });
    expect(await writer.highestTerm(['garbled', SCOPE])).toBe(7);
  });

  it('the texts and the catalogue, and no pointer, has them again', async () => {
    const { room, leading } = await rolling({}, { deps });
    await room.send(publishModel('3'));
    await room.world.clock.advanceBy(100);
    const store = room.server.connect();
    const catalogue = (await room.pointer(CATALOGUE_SCOPE))?.stable.digest ?? 'none';
    const digests = [sha256('feed 1'), sha256('feed 2'), catalogue];
    const found = (): Promise<boolean[]> =>
      room.world.settle(Promise.all(digests.map((digest) => store.hasDocument(digest))));
    expect(await found()).toEqual([true, true, true]);
    room.server.lose('documents');
    expect(await found()).toEqual([false, false, false]);
    await room.world.clock.advanceBy(RECONCILED_MS);
    expect(await found()).toEqual([true, true, true]);
    const warnings = room.world.telemetry.logs.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual(Array(2).fill(LOST));
    // Nothing was decided for it.
    expect(leading.stage.controller.state.scopes.get(SCOPE)?.epoch).toBe((await room.pointer())?.epoch);
    expect(told(room).filter((line) => line.startsWith('store-reseeded'))).toEqual([]);
  });
});
