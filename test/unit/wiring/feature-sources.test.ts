import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { memoryFeatureSource } from '../../../src/adapters/memory/feature-source.ts';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { connect, type RequestInput } from '../../../src/client/client.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { ITEM_FEATURES, readCatalogue } from '../../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../../src/traffic/request-maker.ts';
import { embeddedTransport } from '../../../src/wiring/embedded-transport.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';
import { edit } from '../inference/ranker-version.ts';

/** Far more than loading a model needs on a busy machine. */
const PATIENCE_MS = 60_000;

/** The committed ranker, its items and users in a store. */
function rankerWithSources(root: string): void {
  const folder = join(root, 'ranker/1');
  cpSync('models/repository/ranker/1', folder, { recursive: true });
  edit(folder, 'config.yaml', (text) =>
    text
      .replace(
        /axes: \[candidate, feature\] \}/,
        'axes: [candidate, feature], source: { view: items, entity: item_id, ids: INT64, features: [embedding], missing: default } }',
      )
      .replace(
        /(name: user, .*axes: \[request, feature\]) \}/,
        '$1, source: { view: users, entity: user_id, ids: STRING, idFrom: context.user, features: [taste], missing: reject } }',
      ),
  );
}

it(
  'ids alone give the same scores as the rows that the store has of them',
  async () => {
    const root = temporaryFolder().path('models');
    rankerWithSources(root);
    const catalogue = readCatalogue('models/catalogue');
    const clock = systemClock();
    const features = memoryFeatureSource(clock);
    catalogue.itemIds.forEach((id, item) => {
      const embedding = [
        ...catalogue.itemFeatures.subarray(item * ITEM_FEATURES, (item + 1) * ITEM_FEATURES),
      ];
      features.put({ view: 'items', joinKey: 'item_id', id: BigInt(id), features: { embedding } });
    });
    const { settings } = loadSettings(
      {},
      { models: root, fleet: 'examples/fleets/one-pool.yaml', policy: 'examples/policies/one-pool.yaml' },
    );
    const telemetry = silentTelemetry();
    const transport = embeddedTransport(settings, { telemetry, random: seededRandom(3), clock, features });
    const client = await connect({ transport });
    const score = (request: RequestInput) => client.score({ ...request, deadlineMs: PATIENCE_MS });
    const maker = createRequestMaker(catalogue, seededRandom(7).stream('requests'));
    const { requestId: _, ...inline } = maker.make('with-tensors', { candidates: 16, historyRows: 4 });
    const user = inline.requestTensors.find(({ name }) => name === 'user');
    const taste = Array.from({ length: 64 }, (_, k) => user?.contents.readFloatLE(4 * k) ?? 0);
    features.put({ view: 'users', joinKey: 'user_id', id: 'ann', features: { taste } });

    const ofRows = await score(inline);
    const byId = {
      ...inline,
      context: { user: 'ann' },
      requestTensors: inline.requestTensors.filter(({ name }) => name !== 'user'),
      candidateTensors: [],
    };
    const ofIds = await score(byId);
    expect(ofRows).toMatchObject({ outcome: 'SCORED', featureViews: '', candidatesScored: 16 });
    expect(ofIds).toMatchObject({ outcome: 'SCORED', featureViews: 'users,items', candidatesScored: 16 });
    expect(ofIds.scores).toEqual(ofRows.scores);

    expect(await score({ ...byId, context: { user: 'bob' } })).toMatchObject({
      outcome: 'REJECTED',
      reason: { code: 'NO_FEATURES' },
    });
    expect(await score({ ...byId, context: {} })).toMatchObject({
      outcome: 'REJECTED',
      reason: { code: 'INVALID_TENSOR', message: expect.stringMatching(/or context\.user in its place/) },
    });
    features.stop();
    expect(await score(byId)).toMatchObject({ outcome: 'REJECTED', reason: { code: 'STORE_UNAVAILABLE' } });
    expect(await score(inline)).toMatchObject({ outcome: 'SCORED' });
    await client.close();
  },
  2 * PATIENCE_MS,
);
