import { expect, it } from 'vitest';
import { memoryControlServer } from '../../../src/adapters/memory/control-store.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { packageVersion } from '../../../src/config/package-version.ts';
import type { PoolStatus } from '../../../src/contracts/records.ts';
import { topicSpecs } from '../../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { CATALOGUE_SCOPE, writeCatalogue } from '../../../src/core/model/catalogue.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { growingRepository } from '../../../src/inference/repository/growing-repository.ts';
import { startAcceleratorWorker } from '../../../src/wiring/accelerator-worker.ts';
import { createBackend, loadModels, openModels } from '../../../src/wiring/backends.ts';
import { readFleet } from '../../../src/wiring/policy-files.ts';
import { MemoryWorld } from '../adapters/memory/bus.fixture.ts';
import { publishedModel, sha256 } from '../core/model/model.fixture.ts';
import { noLibrary } from '../stages/accelerator-worker/library.fixture.ts';
import { codecs, topics } from '../stages/records.fixture.ts';

/** What a worker that these settings wire says of itself, and of a version that nobody signed. */
async function saidOf(changes: Readonly<Record<string, boolean | string>>): Promise<PoolStatus | undefined> {
  const overrides = { 'worker.backend': 'immediate', fleet: 'examples/fleets/one-pool.yaml', ...changes };
  const { settings } = loadSettings({}, overrides);
  const world = new MemoryWorld();
  const { clock, telemetry } = world;
  const outside = world.connect();
  const pools = new Map([['cpu', 1]]);
  await world.settle(
    outside.admin.createTopics(topicSpecs({ topics, partitions: 1, replication: 1, pools, tenants: [] })),
  );
  const server = memoryControlServer({ clock });
  const store = server.connect();
  const version = { model: publishedModel('3'), publication: 1, isNamed: false, proof: undefined };
  const text = writeCatalogue({ versions: [version] });
  const stable = { digest: sha256(text), name: 'models', version: 1 };
  await world.settle(store.putDocument(stable.digest, Buffer.from(text)));
  await world.settle(store.writePointer(CATALOGUE_SCOPE, { epoch: 1, term: 1, stable, canary: undefined }));
  let said: PoolStatus | undefined;
  await world.settle(
    outside.read({ topics: [topics.fixed('pool-status')], startAt: 'earliest' }, (records) => {
      for (const { value } of records) {
        const decoded = codecs.for('PoolStatus').decode(value);
        if (decoded.status === 'ok' && decoded.value.published.length > 0) said = decoded.value;
      }
    }),
  );
  const random = seededRandom(1);
  const repository = growingRepository(await openModels(settings, telemetry));
  const backend = createBackend(settings, 'cpu', { repository, clock, random });
  const models = await loadModels(backend, repository, telemetry);
  const stage = await world.settle(
    startAcceleratorWorker(
      settings,
      { bus: world.connect(), codecs, topics, clock, random, telemetry, topicDelay: createTopicDelay() },
      { fleet: readFleet(settings), backend, models, repository, store, library: noLibrary() },
    ),
  );
  await clock.advanceBy(3_000);
  await world.settle(stage.close());
  return said;
}

it('a worker takes model versions by the same settings as a router policies', async () => {
  const published = async (changes: Parameters<typeof saidOf>[0]) => (await saidOf(changes))?.published[0];
  expect(await published({})).toMatchObject({
    status: 'FAILED',
    reason: 'signature: nobody signed it, and this worker takes nothing unsigned',
  });
  // then it asks its library, which has none
  expect(await published({ 'controller.acceptUnsigned': true })).toMatchObject({
    status: 'FAILED',
    reason: 'there is no library',
  });
});

it('a worker says which build it is: what the setting says, or else the version of the package', async () => {
  expect((await saidOf({}))?.build).toBe(packageVersion());
  expect((await saidOf({ 'worker.build': 'sha256:abc' }))?.build).toBe('sha256:abc');
});
