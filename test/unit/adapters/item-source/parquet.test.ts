import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openParquet } from '../../../../src/adapters/item-source/parquet.ts';
import type { ItemColumns } from '../../../../src/ports/item-source.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';

const FILES = join(import.meta.dirname, 'files');
const BY_PREFIX: ItemColumns = { id: 'sku', features: { prefix: 'f_' } };

async function readAll(file: string, columns: ItemColumns) {
  const source = await openParquet(file, columns);
  const items: { id: string; values: number[] }[] = [];
  for await (const rows of source.rows())
    for (const { id, values } of rows) items.push({ id, values: Array.from(values) });
  return { columns: source.columns, items, total: source.total, done: source.done() };
}

it.each(['none', 'snappy', 'gzip', 'zstd', 'brotli'])('reads a file compressed by %s', async (codec) => {
  const { columns, items, total, done } = await readAll(join(FILES, `${codec}.parquet`), BY_PREFIX);
  expect(columns).toEqual(['f_double', 'f_float', 'f_int', 'f_long']);
  expect(items).toEqual([
    { id: 'a', values: [0.5, 1, 1, 10] },
    { id: '', values: [-1.25, 2, 2, 20] },
    { id: 'é', values: [0, 3, 3, 30] },
    { id: '7', values: [3e9, 4, 4, 40] },
    { id: '007', values: [Math.fround(1e-3), 5, 5, 50] },
  ]);
  expect([total, done]).toEqual([5, 5]);
});

it('reads whole numbers as ids, and features in the order in which they are named', async () => {
  const columns: ItemColumns = { id: 'number', features: { names: ['f_int', 'f_double'] } };
  const { items } = await readAll(join(FILES, 'snappy.parquet'), columns);
  expect(items.map(({ id }) => id)).toEqual(['1', '-2', String(2n ** 62n), '4', '5']);
  expect(items[3]?.values).toEqual([4, 3e9]);
});

it.each<[string, ItemColumns, RegExp]>([
  [
    'a column that is not there',
    { id: 'id', features: { prefix: 'f_' } },
    /no such column \(got "id"; allowed: sku, /,
  ],
  ['no column of the prefix', { id: 'sku', features: { prefix: 'g_' } }, /no columns of features \(got "g_"/],
  [
    'a feature that is named twice',
    { id: 'sku', features: { names: ['f_int', 'f_int'] } },
    /named twice \(got "f_int"/,
  ],
  ['lists', { id: 'sku', features: { names: ['list'] } }, /holds lists or records \(got "list"/],
  [
    'a hole',
    { id: 'sku', features: { names: ['f_int', 'holes'] } },
    /zstd\.parquet row 2, column "holes": no finite number \(got null/,
  ],
  [
    'texts as features',
    { id: 'number', features: { names: ['sku'] } },
    /row 1, column "sku": no finite number \(got "a"/,
  ],
  [
    'numbers with a fraction as ids',
    { id: 'f_double', features: { names: ['f_int'] } },
    /row 1, column "f_double": there is no id/,
  ],
])('refuses %s', async (_, columns, message) => {
  const error: unknown = await readAll(join(FILES, 'zstd.parquet'), columns).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'INVALID_CONFIG', message: expect.stringMatching(message) });
});

it('refuses what is no Parquet', async () => {
  const file = temporaryFolder().path('x.parquet');
  writeFileSync(file, 'item_id,f_1\n1,2\n');
  await expect(readAll(file, BY_PREFIX)).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
});
