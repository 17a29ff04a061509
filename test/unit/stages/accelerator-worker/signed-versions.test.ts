import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { type ControlCommand, makeControlCommand } from '../../../../src/contracts/records.ts';
import {
  CATALOGUE_SCOPE,
  type CataloguedModel,
  readCatalogue,
  writeCatalogue,
} from '../../../../src/core/model/catalogue.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { LoadedVersions } from '../../../../src/stages/accelerator-worker/loaded-versions.ts';
import { PublishedVersions } from '../../../../src/stages/accelerator-worker/published-versions.ts';
import { HOUR_MS, type Person, person, ringOf, signed, verify } from '../../core/control/keys.fixture.ts';
import { publishedModel, sha256 } from '../../core/model/model.fixture.ts';
import { type ControlRoom, lead, openControlRoom } from '../policy-controller/controller.fixture.ts';
import { type HandDrivenLibrary, handDrivenLibrary } from './library.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';

const ana = person('ana', { scopes: ['model/*', 'keys'] });
const ben = person('ben', { scopes: ['model/*', 'keys'] });
const keys = ringOf(ana, ben);

const leadStrictly = (room: ControlRoom) =>
  lead(room, { config: { acceptUnsigned: false }, deps: { signatures: { keys, verify }, digest: sha256 } });

async function send(room: ControlRoom, sent: ControlCommand, by: Person): Promise<void> {
  await room.send(signed(sent, by, { notAfterMs: room.world.clock.wallMs() + HOUR_MS }));
  await room.world.clock.advanceBy(2_000);
  expect(room.events.at(-1)).toMatchObject({ accepted: true });
}

const publishVersion = (version: string, commandId = `model-${version}`): ControlCommand =>
  makeControlCommand({
    commandId,
    scope: 'model/ranker',
    type: 'PUBLISH_MODEL',
    body: Buffer.from(JSON.stringify(publishedModel(version))),
    actor: 'ana',
  });
const revoke = (keyId: string): ControlCommand =>
  makeControlCommand({
    commandId: `revoke-${keyId}`,
    scope: 'keys',
    type: 'REVOKE_KEY',
    body: Buffer.from(JSON.stringify({ keyId })),
    actor: 'ben',
  });

/** A worker's published versions on the room's store, which takes what people signed only. */
async function openWorker(room: ControlRoom, hand: HandDrivenLibrary = handDrivenLibrary()) {
  const { clock } = room.world;
  const telemetry = silentTelemetry();
  const loaded = new LoadedVersions([handDrivenModel()]);
  const versions = new PublishedVersions(
    { versionsMax: 8, unloadAfterMs: 60_000 },
    {
      store: room.server.connect(),
      library: hand.library,
      backend: hand.backend,
      loaded,
      digest: sha256,
      trust: { keys, acceptUnsigned: false, verify },
      clock,
      random: seededRandom(1).stream('models'),
      telemetry,
      inUse: () => false,
      onChange: () => undefined,
    },
  );
  const starting = versions.start();
  await clock.advanceBy(1_000);
  await starting;
  return {
    hand,
    shown: (): string[] =>
      versions.statuses().map(({ version, status, reason }) => `${version} ${status} ${reason}`.trim()),
    serves: (version: string) => loaded.modelFor('ranker', version, 'BASELINE') !== undefined,
    refusals: () =>
      telemetry.logs.filter(({ message }) => message.startsWith('a published version is refused')).length,
    close: () => room.world.settle(versions.close()),
  };
}

/** What somebody does who may write to the store, and to no topic. */
async function forge(
  room: ControlRoom,
  change: (versions: readonly CataloguedModel[]) => readonly CataloguedModel[],
): Promise<void> {
  const store = room.server.connect();
  const settle = <T>(promise: Promise<T>): Promise<T> => room.world.settle(promise);
  const pointer = await room.pointer(CATALOGUE_SCOPE);
  const bytes = await settle(store.readDocument(pointer?.stable.digest ?? ''));
  const { versions = [] } = readCatalogue(Buffer.from(bytes ?? []).toString()) ?? {};
  const text = writeCatalogue({ versions: change(versions) });
  const stable = { digest: sha256(text), name: 'models', version: 99 };
  await settle(store.putDocument(stable.digest, Buffer.from(text)));
  const epoch = (pointer?.epoch ?? 0) + 1;
  await settle(store.writePointer(CATALOGUE_SCOPE, { epoch, term: 99, stable, canary: undefined }));
  await room.world.clock.advanceBy(3_000);
}

const unsigned = (version: string, fields: Partial<CataloguedModel> = {}): CataloguedModel => ({
  model: publishedModel(version),
  publication: 99,
  isNamed: true,
  proof: undefined,
  ...fields,
});

describe('a worker that takes signed versions only', () => {
  it('takes what people published, after another controller took over and the store was emptied as well', async () => {
    const room = await openControlRoom();
    const first = await leadStrictly(room);
    await send(room, publishVersion('3'), ana);
    const worker = await openWorker(room);
    expect(worker.shown()).toEqual(['3 READY']);
    await room.world.settle(first.stage.close());
    room.server.empty();
    await leadStrictly(room);
    await room.world.clock.advanceBy(2_000);
    const other = await openWorker(room);
    expect(other.shown()).toEqual(['3 READY']);
    await worker.close();
    await other.close();
  });

  it.each<[string, (versions: readonly CataloguedModel[]) => readonly CataloguedModel[], RegExp]>([
    [
      'that nobody signed',
      (versions) => [...versions, unsigned('4')],
      /^4 FAILED signature: nobody signed it/,
    ],
    [
      'with the signature of another',
      (versions) => [...versions, unsigned('4', { proof: versions[0]?.proof })],
      /^4 FAILED signature: what was signed are other files/,
    ],
  ])('refuses one %s, says why, and fetches nothing of it', async (_name, attack, reason) => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishVersion('3'), ana);
    const worker = await openWorker(room);
    await forge(room, attack);
    expect(worker.shown()[0]).toBe('3 READY');
    expect(worker.shown()[1]).toMatch(reason);
    expect(worker.hand.did.filter((step) => step.endsWith('@4'))).toEqual([]);
    await room.world.clock.advanceBy(600_000);
    expect(worker.refusals()).toBe(1);
    await worker.close();
  });

  it('goes on with a version that somebody changes in the store: its files, its place, or its signature', async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishVersion('3'), ana);
    const worker = await openWorker(room);
    const steps = worker.hand.did.length;
    const other = publishedModel('3', { 'config.yaml': 'format: 1', 'model.onnx': 'bad' });
    await forge(room, (versions) => versions.map((each) => ({ ...each, model: other })));
    await forge(room, ([each]) =>
      each === undefined ? [] : [{ ...each, model: publishedModel('3', undefined, { source: '/bad' }) }],
    );
    await forge(room, () => [unsigned('3')]);
    await room.world.clock.advanceBy(120_000);
    expect(worker.shown()).toEqual(['3 READY']);
    expect(worker.serves('3')).toBe(true);
    expect(worker.hand.did).toHaveLength(steps);
    await worker.close();
  });

  it('begins nothing by a key that was revoked, until somebody else signs it; what it runs stays', async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishVersion('3'), ana);
    const running = await openWorker(room);
    await send(room, revoke('ana'), ben);
    await send(room, publishVersion('4'), ben);
    expect(running.shown()).toEqual(['3 READY', '4 READY']);
    const fresh = await openWorker(room);
    expect(fresh.shown()).toEqual(['3 FAILED signature: the key ana is revoked', '4 READY']);
    await send(room, publishVersion('3', 'again'), ben);
    expect(fresh.shown().sort()).toEqual(['3 READY', '4 READY']);
    await running.close();
    await fresh.close();
  });

  it('begins with what an earlier life took, and with nothing that somebody else put there, while the store is away', async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishVersion('3'), ana);
    await send(room, revoke('ana'), ben);
    await send(room, publishVersion('4'), ben);
    const hand = handDrivenLibrary();
    const first = await openWorker(room, hand);
    await first.close();
    room.server.stop();
    const second = await openWorker(room, hand);
    // that the key was out by then is kept as well
    expect(second.shown()).toEqual(['3 FAILED signature: the key ana is revoked', '4 READY']);
    await second.close();
    hand.kept = writeCatalogue({ versions: [unsigned('5')] });
    const third = await openWorker(room, hand);
    expect(third.shown()).toEqual([
      '5 FAILED signature: nobody signed it, and this worker takes nothing unsigned',
    ]);
    await third.close();
  });
});
