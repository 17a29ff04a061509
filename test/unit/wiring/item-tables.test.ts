import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { folderModelSource } from '../../../src/adapters/model-source/folder.ts';
import { connect, type RequestInput } from '../../../src/client/client.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { makeTensor, type ScoreRequest } from '../../../src/contracts/records.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { ItemTableWriter } from '../../../src/inference/items/item-table-writer.ts';
import { describeVersion } from '../../../src/inference/repository/describe-version.ts';
import { type Catalogue, ITEM_FEATURES, readCatalogue } from '../../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../../src/traffic/request-maker.ts';
import { embeddedTransport } from '../../../src/wiring/embedded-transport.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';
import { numberIds, textIds } from '../inference/items/table.fixture.ts';
import { edit, rankerVersion } from '../inference/ranker-version.ts';

/** Far more than loading a model needs on a busy machine. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 50;

/** The committed ranker, its items in a table. */
function rankerWithTable(root: string, unknown: 'default' | 'reject'): string {
  const folder = join(root, 'ranker/1');
  cpSync('models/repository/ranker/1', folder, { recursive: true });
  nameTable(folder, unknown);
  return folder;
}

function nameTable(folder: string, unknown: 'default' | 'reject'): void {
  edit(folder, 'config.yaml', (text) =>
    text.replace(
      /axes: \[candidate, feature\] \}/,
      `axes: [candidate, feature], table: { name: catalogue, unknown: ${unknown} } }`,
    ),
  );
}

/** @param scale of every feature: another one gives other scores */
async function buildCatalogue(folder: string, version: string, scale: number): Promise<Catalogue> {
  const catalogue = readCatalogue('models/catalogue');
  const writer = await ItemTableWriter.open({
    ...{ folder, name: 'catalogue', version, datatype: 'float32', defaultRow: { kind: 'zeros' } },
    columns: Array.from({ length: ITEM_FEATURES }, (_, column) => `f_${column}`),
  });
  catalogue.itemIds.forEach((id, item) => {
    const row = catalogue.itemFeatures.subarray(item * ITEM_FEATURES, (item + 1) * ITEM_FEATURES);
    writer.add(
      String(id),
      row.map((value) => value * scale),
    );
  });
  await writer.finish();
  return catalogue;
}

async function open(root: string) {
  const { settings } = loadSettings(
    {},
    {
      models: root,
      fleet: 'examples/fleets/one-pool.yaml',
      policy: 'examples/policies/one-pool.yaml',
      'worker.itemTablesLookMs': LOOK_MS,
    },
  );
  const transport = embeddedTransport(settings, { telemetry: silentTelemetry(), random: seededRandom(3) });
  const client = await connect({ transport });
  const score = (request: RequestInput) => client.score({ ...request, deadlineMs: PATIENCE_MS });
  return { client, score };
}

function requestFor(catalogue: Catalogue, candidates: number): ScoreRequest {
  const maker = createRequestMaker(catalogue, seededRandom(7).stream('requests'));
  return maker.make('with-tensors', { candidates, historyRows: 4 });
}

const withIds = (request: ScoreRequest, candidateIds: ScoreRequest['candidateIds']): RequestInput => {
  const { requestId: _, ...rest } = request;
  return { ...rest, candidateIds, candidateTensors: [], baselineCandidates: candidateIds?.shape[0] ?? 0 };
};

it(
  'ids alone give the same scores as their rows inline; unknown ids are counted; another table is taken without a restart',
  async () => {
    const root = temporaryFolder().path('models');
    const folder = rankerWithTable(root, 'default');
    const catalogue = await buildCatalogue(folder, '2026-11-30', 1);
    const { client, score } = await open(root);
    const inline = requestFor(catalogue, 64);
    const ofTensors = await score(inline);
    const ofIds = await score(withIds(inline, inline.candidateIds));
    expect(ofTensors).toMatchObject({ outcome: 'SCORED', itemTableVersion: '', unknownIds: 0 });
    expect(ofIds).toMatchObject({
      outcome: 'SCORED',
      itemTableVersion: 'catalogue@2026-11-30',
      unknownIds: 0,
    });
    expect(ofIds.candidatesScored).toBe(64);
    expect(ofIds.scores).toEqual(ofTensors.scores);

    const known = catalogue.itemIds.slice(0, 3).map(String);
    const ofTexts = await score(withIds(inline, textIds(known)));
    const ofNumbers = await score(withIds(inline, numberIds(known.map(BigInt))));
    expect(ofTexts.scores).toEqual(ofNumbers.scores);
    const someUnknown = await score(withIds(inline, textIds([...known, 'sku-1', 'sku-2'])));
    expect(someUnknown).toMatchObject({ outcome: 'SCORED', unknownIds: 2, candidatesScored: 5 });
    const zeros = makeTensor({
      name: 'item',
      datatype: 'FP32',
      shape: [1, ITEM_FEATURES],
      contents: Buffer.alloc(4 * ITEM_FEATURES),
    });
    const ofZeros = await score({ ...withIds(inline, numberIds([1n])), candidateTensors: [zeros] });
    expect(someUnknown.scores.readFloatLE(4 * 3)).toBeCloseTo(ofZeros.scores.readFloatLE(0), 6);

    const without = await score({ ...withIds(inline, null), candidateTensors: [] });
    expect(without).toMatchObject({ outcome: 'SCORED', candidatesScored: 0 });

    await buildCatalogue(folder, '2026-12-01', 0.5);
    await vi.waitFor(async () => {
      const { itemTableVersion } = await score(withIds(inline, inline.candidateIds));
      expect(itemTableVersion).toBe('catalogue@2026-12-01');
    }, PATIENCE_MS);
    const ofNewTable = await score(withIds(inline, inline.candidateIds));
    expect(ofNewTable.scores).not.toEqual(ofTensors.scores);
    expect((await score(inline)).scores).toEqual(ofTensors.scores);
    await client.close();
  },
  2 * PATIENCE_MS,
);

it(
  'a model that refuses unknown ids names the first of them',
  async () => {
    const root = temporaryFolder().path('models');
    const catalogue = await buildCatalogue(rankerWithTable(root, 'reject'), '1', 1);
    const { client, score } = await open(root);
    const inline = requestFor(catalogue, 2);
    const refused = await score(withIds(inline, textIds([String(catalogue.itemIds[0]), 'sku-9', 'sku-8'])));
    expect(refused).toMatchObject({
      outcome: 'REJECTED',
      reason: { code: 'UNKNOWN_ITEM', retryable: false },
    });
    expect(refused.reason?.message).toMatch(
      /catalogue@1 has no row for 2 of 3 ids, the first of them \(got "sku-9"\)/,
    );
    expect(await score(withIds(inline, inline.candidateIds))).toMatchObject({ outcome: 'SCORED' });
    await client.close();
  },
  2 * PATIENCE_MS,
);

it(
  'a version that is published brings its own table',
  async () => {
    const folder = temporaryFolder();
    const root = folder.path('models');
    const catalogue = await buildCatalogue(rankerWithTable(root, 'default'), 'of-the-folder', 1);
    const published = rankerVersion(folder.path('shared'), '7');
    nameTable(published, 'default');
    await buildCatalogue(published, 'of-version-7', 1);
    const { client, score } = await open(root);
    const described = await describeVersion(folderModelSource(), published, new AbortController().signal);
    expect(described.files.map(({ name }) => name)).toContain('items.catalogue.bin');
    const body = JSON.stringify({ ...described, source: published });
    await client.control.publish({ scope: 'model/ranker', type: 'PUBLISH_MODEL', body });
    const inline = requestFor(catalogue, 16);
    const byIds = withIds(inline, inline.candidateIds);
    await vi.waitFor(async () => {
      const result = await score({ ...byIds, model: 'ranker@7' });
      expect(result).toMatchObject({ outcome: 'SCORED', itemTableVersion: 'catalogue@of-version-7' });
    }, PATIENCE_MS);
    const { requestId: _, ...rows } = inline;
    const ofRows = await score({ ...rows, model: 'ranker@7' });
    expect((await score({ ...byIds, model: 'ranker@7' })).scores).toEqual(ofRows.scores);
    expect(await score(byIds)).toMatchObject({ itemTableVersion: 'catalogue@of-the-folder' });
    await client.close();
  },
  2 * PATIENCE_MS,
);
