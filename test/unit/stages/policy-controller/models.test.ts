import { describe, expect, it } from 'vitest';
import { type ControlCommand, makeControlCommand } from '../../../../src/contracts/records.ts';
import { CATALOGUE_SCOPE, readCatalogue } from '../../../../src/core/model/catalogue.ts';
import type { PublishedModel } from '../../../../src/core/model/published-model.ts';
import { publishedModel, sha256 } from '../../core/model/model.fixture.ts';
import { type ControlRoom, lead, openControlRoom, publish, rollBack, told } from './controller.fixture.ts';

const model = publishedModel;
/** Of the whole text: catalogues begin alike. */
const deps = { digest: sha256 };

function publishModel(published: PublishedModel, fields: Partial<ControlCommand> = {}): ControlCommand {
  return makeControlCommand({
    commandId: `model-${published.version}`,
    scope: 'model/ranker',
    type: 'PUBLISH_MODEL',
    body: Buffer.from(JSON.stringify(published)),
    actor: 'ana',
    ...fields,
  });
}

/** What workers find in the store: epoch, and the versions with a `!` where they are named. */
async function catalogue(room: ControlRoom): Promise<string | undefined> {
  const pointer = await room.pointer(CATALOGUE_SCOPE);
  if (pointer === undefined) return undefined;
  const store = room.server.connect();
  const bytes = await room.world.settle(store.readDocument(pointer.stable.digest));
  const versions = readCatalogue(Buffer.from(bytes ?? []).toString())?.versions ?? [];
  const names = versions.map(
    ({ model: { family, version }, isNamed }) => `${family}@${version}${isNamed ? '!' : ''}`,
  );
  return [`epoch ${pointer.epoch}, term ${pointer.term}:`, ...names].join(' ');
}

describe('model versions', () => {
  it('that are published are in the log and in the catalogue', async () => {
    const room = await openControlRoom();
    await lead(room, { deps });
    await room.send(publish(1));
    expect(await catalogue(room)).toBeUndefined();
    await room.send(publishModel(model('3')));
    await room.world.clock.advanceBy(100);
    expect(told(room)).toEqual([
      'leadership-taken 1 0',
      'policy-published 1 1 publish-1',
      'model-published 1 3 model-3',
    ]);
    expect(await catalogue(room)).toBe('epoch 3, term 1: ranker@3');
  });

  it.each([
    ['another scope', { scope: 'model/ads' }, /scope must be model\/ranker, not model\/ads/],
    ['a scope of policies', { scope: 'policy/feed' }, /scope must be model\/ranker/],
    ['no body', { body: Buffer.alloc(0) }, /does not take this body/],
    [
      'a digest of other files',
      { body: Buffer.from(JSON.stringify({ ...model('3'), digest: 'sha256:0' })) },
      /not that of the files/,
    ],
  ])('with %s are refused with the reason', async (_name, fields, reason) => {
    const room = await openControlRoom();
    await lead(room, { deps });
    await room.send(publishModel(model('3'), fields));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({ accepted: false, reason: expect.stringMatching(reason) });
    expect(await catalogue(room)).toBeUndefined();
  });

  it('that the catalogue has no room for are refused before anything is written, and the controller goes on', async () => {
    const room = await openControlRoom();
    await lead(room, { deps });
    // of the characters that are longest in JSON
    const source = `/${'\u0001'.repeat(1_000)}`;
    const texts = Object.fromEntries([
      ['config.yaml', 'format: 1'],
      ...Array.from({ length: 31 }, (_, n) => [`${n}${'x'.repeat(126)}`, 'weights']),
    ]);
    const large = (n: number): ControlCommand =>
      publishModel(model('1', texts, { family: `family-${n}`, source }), {
        commandId: `model-${n}`,
        scope: `model/family-${n}`,
      });
    for (let n = 0; room.events.at(-1)?.accepted !== false && n < 100; n += 1) {
      await room.send(large(n));
      await room.world.clock.advanceBy(100);
    }
    const taken = room.events.length - 2;
    expect(taken).toBeGreaterThan(60);
    expect(room.events.at(-1)).toMatchObject({
      type: 'command-refused',
      scope: `model/family-${taken}`,
      reason: expect.stringMatching(/would have 10\d{5} bytes; allowed: 1048576/),
    });
    const before = await catalogue(room);
    expect(before).toContain(`family-${taken - 1}@1`);
    expect(before).not.toContain(`family-${taken}@1`);
    await room.send(publishModel(model('3'), { commandId: 'small' }));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({ reason: null, accepted: true });
    expect(await catalogue(room)).toContain('ranker@3');
    // who leads next finds the same
    await lead(room, { deps });
    await room.world.clock.advanceBy(10_000);
    expect(await catalogue(room)).toContain('ranker@3');
  });

  it('that a policy names are marked from its publication on', async () => {
    const room = await openControlRoom();
    await lead(room, { deps });
    for (const command of [publishModel(model('3')), publishModel(model('4'))]) await room.send(command);
    await room.send(publish(1));
    await room.world.clock.advanceBy(100);
    expect(await catalogue(room)).toBe('epoch 4, term 1: ranker@3 ranker@4');
    await room.send(publish(2, { body: Buffer.from('feed 2 ranker@3') }));
    await room.world.clock.advanceBy(100);
    expect(await catalogue(room)).toBe('epoch 6, term 1: ranker@3! ranker@4');
  });

  it('that served once and that nothing names any more are offered no more', async () => {
    const room = await openControlRoom();
    await lead(room, { deps });
    for (const version of ['3', '4']) await room.send(publishModel(model(version)));
    const bodies = ['feed 1 ranker@3', 'feed 2 ranker@4', 'feed 3 ranker@4', 'feed 4 ranker@4'];
    for (const [place, body] of bodies.entries())
      await room.send(publish(place + 1, { body: Buffer.from(body) }));
    await room.world.clock.advanceBy(100);
    expect(await catalogue(room)).toMatch(/: ranker@4!$/);
    await room.send(rollBack({ body: Buffer.from('1') }));
    await room.world.clock.advanceBy(100);
    expect(await catalogue(room)).toMatch(/: ranker@3! ranker@4!$/);
  });

  it('that are not ready may not be named: the policy is refused, and it is said who cannot run what', async () => {
    const room = await openControlRoom();
    const reasons = ['w1 (pool cpu) refuses ranker@3: golden case 1 gives NaN'];
    const asked: string[] = [];
    const fleetVersions = {
      hasHeard: () => true,
      heard: async () => undefined,
      notReady: (policy: { models: ReadonlyMap<string, unknown> }, how: string) => {
        asked.push(how);
        return policy.models.size === 0 ? [] : reasons;
      },
    };
    await lead(room, { deps: { ...deps, fleetVersions } });
    await room.send(publish(1));
    await room.send(publish(2, { body: Buffer.from('feed 2 ranker@3') }));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({
      accepted: false,
      reason:
        'feed 2 names model versions that are not ready: w1 (pool cpu) refuses ranker@3: golden case 1 gives NaN. See millrace model status',
    });
    reasons.length = 0;
    await room.send(publish(2, { commandId: 'again', body: Buffer.from('feed 2 ranker@3') }));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({ accepted: true, type: 'policy-published' });
    expect(new Set(asked)).toEqual(new Set(['all']));
  });

  it('of workers that were not heard of yet are waited for before a policy is refused', async () => {
    const room = await openControlRoom();
    let hasHeard = false;
    const fleetVersions = {
      hasHeard: () => hasHeard,
      heard: async () => {
        hasHeard = true;
      },
      notReady: () => (hasHeard ? [] : ['no live worker']),
    };
    await lead(room, { deps: { ...deps, fleetVersions } });
    await room.send(publish(1, { body: Buffer.from('feed 1 ranker@3') }));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({ accepted: true, type: 'policy-published' });
  });

  it('are in the store again after it was emptied, and after another controller took over', async () => {
    const room = await openControlRoom();
    const first = await lead(room, { deps });
    await room.send(publishModel(model('3')));
    await room.world.clock.advanceBy(100);
    room.server.empty();
    await room.world.clock.advanceBy(1_500);
    expect(await catalogue(room)).toBe('epoch 1, term 1: ranker@3');
    await room.world.settle(first.stage.close());
    room.server.empty();
    await lead(room, { deps });
    await room.world.clock.advanceBy(1_500);
    expect(await catalogue(room)).toBe('epoch 1, term 2: ranker@3');
    await room.send(publishModel(model('4')));
    await room.world.clock.advanceBy(100);
    expect(await catalogue(room)).toBe('epoch 2, term 2: ranker@3 ranker@4');
  });
});
