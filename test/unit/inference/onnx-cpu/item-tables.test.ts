import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createImmediateAccelerator } from '../../../../src/inference/immediate.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { ItemResult, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';
import { buildTable, textIds } from '../items/table.fixture.ts';
import { toyFiles, toyItem, toyRequest, toyScores, writeVersion } from '../toy-model.ts';

/** Rows of the requests' own items, so that inline and by id is the same. */
const REQUESTS = [toyRequest(1, 3, 1), toyRequest(2, 2, 0), toyRequest(3, 5, 2)];

/** The toy, the items of all requests in a table: the kth of request r is `r.k`. */
async function openToy(unknown: 'default' | 'reject', datatype: 'float32' | 'int8' = 'float32') {
  const root = temporaryFolder().path('models');
  const files = toyFiles();
  const table = { name: 'catalogue', unknown };
  const inputs = files.config.inputs.map((input) => (input['name'] === 'item' ? { ...input, table } : input));
  await writeVersion(root, { ...files, config: { ...files.config, inputs } });
  const ids = REQUESTS.flatMap(({ items }, r) => items.map((_, k) => `${r}.${k}`));
  const rows = REQUESTS.flatMap(({ items }) => items);
  await buildTable({ root, folder: 'toy/1', table: 'catalogue' }, { ids, rows, datatype });
  return openRepository(root);
}

function byIds(r: number, extra: readonly string[] = []): ScoreItem {
  const item = toyItem(REQUESTS[r] ?? toyRequest(0, 0, 0));
  const ids = Array.from({ length: item.scoreLimit }, (_, k) => `${r}.${k}`);
  const scoreLimit = ids.length + extra.length;
  return { ...item, candidateTensors: [], candidateIds: textIds([...ids, ...extra]), scoreLimit };
}

function scoresOf(result: ItemResult | undefined): number[] | undefined {
  return result?.status === 'scored' ? [...result.scores.scores] : undefined;
}

it('requests by id and with rows share a batch, each with its own scores', async () => {
  const accelerator = createOnnxCpuAccelerator({
    repository: await openToy('default'),
    clock: systemClock(),
  });
  const model = await accelerator.load('toy', '1');
  const [first, second] = [toyItem(REQUESTS[0] ?? toyRequest(0, 0, 0)), byIds(1)];
  const { items } = await model.run(
    [first, second, byIds(2, ['none', 'neither']), { ...byIds(2), scoreLimit: 1 }],
    'dense',
  );
  const expected = REQUESTS.map((request) => toyScores(request).scores);
  expect(scoresOf(items[0])).toEqual(expected[0]);
  expect(scoresOf(items[1])).toEqual(expected[1]);
  expect(scoresOf(items[2])?.slice(0, 5)).toEqual(expected[2]);
  expect(scoresOf(items[3])).toEqual(expected[2]?.slice(0, 1));
  const used = items.map((item) => (item.status === 'scored' ? item.scores.fromTables : 'failed'));
  const tables = ['catalogue@1'];
  expect(used).toEqual([
    undefined,
    { tables, unknownIds: 0 },
    { tables, unknownIds: 2 },
    { tables, unknownIds: 0 },
  ]);
  await accelerator.close();
});

it('an item whose ids are none, or unknown where that is refused, fails alone', async () => {
  const accelerator = createOnnxCpuAccelerator({ repository: await openToy('reject'), clock: systemClock() });
  const model = await accelerator.load('toy', '1');
  const ids = textIds(['0.0', '0.1', '0.2']);
  const bad = [
    byIds(1, ['none']),
    { ...byIds(0), candidateIds: null },
    { ...byIds(0), candidateIds: { ...ids, contents: ids.contents.subarray(0, 9) } },
    { ...byIds(0), candidateIds: textIds(['0.0']) },
    { ...byIds(0), candidateIds: { ...ids, datatype: 'FP32' } },
  ];
  const { items } = await model.run([byIds(0), ...bad], 'dense');
  expect(scoresOf(items[0])).toEqual(toyScores(REQUESTS[0] ?? toyRequest(0, 0, 0)).scores);
  expect(
    items.slice(1).map((item) => (item.status === 'failed' ? Reflect.get(item.error, 'code') : 'scored')),
  ).toEqual(['UNKNOWN_ITEM', 'INVALID_TENSOR', 'INVALID_TENSOR', 'INVALID_TENSOR', 'INVALID_TENSOR']);
  await accelerator.close();
});

it('a backend that answers at once finds the rows all the same', async () => {
  const model = await createImmediateAccelerator({ repository: await openToy('reject', 'int8') }).load(
    'toy',
    '1',
  );
  const { items } = await model.run([byIds(0), byIds(1, ['none'])], 'dense');
  expect(items[0]).toMatchObject({
    status: 'scored',
    scores: { fromTables: { tables: ['catalogue@1'], unknownIds: 0 } },
  });
  expect(items[1]).toMatchObject({ status: 'failed', error: { code: 'UNKNOWN_ITEM' } });
});
