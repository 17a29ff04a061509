import { expect, it } from 'vitest';
import { openCsv } from '../../../../src/adapters/item-source/csv.ts';
import type { ItemColumns } from '../../../../src/ports/item-source.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';

const COLUMNS: ItemColumns = { id: 'id', features: { prefix: 'f_' } };

async function readAll(text: string, columns = COLUMNS) {
  const source = await openCsv(temporaryFolder().write('items.csv', text), columns);
  const items: { id: string; values: number[] }[] = [];
  for await (const rows of source.rows())
    for (const { id, values } of rows) items.push({ id, values: Array.from(values) });
  return { columns: source.columns, items, isDone: source.done() === source.total };
}

it('reads ids as they stand there, quoted cells, a byte order mark, and numbers of any kind', async () => {
  const text =
    '\ufefff_1,"id",other,f_2\r\n1,007,x,-2.5e1\r\n"0.5","a ""b"", c",,1.\r\n.5,"two\nlines",,+3\r\n';
  expect(await readAll(text)).toEqual({
    columns: ['f_1', 'f_2'],
    items: [
      { id: '007', values: [1, -25] },
      { id: 'a "b", c', values: [0.5, 1] },
      { id: 'two\nlines', values: [0.5, 3] },
    ],
    isDone: true,
  });
});

it('gives many rows in their order', async () => {
  const lines = Array.from({ length: 5_000 }, (_, row) => `${row},${row / 2}`);
  const { items } = await readAll(['id,f_1', ...lines].join('\n'));
  expect(items.length).toBe(5_000);
  expect(items[4_999]).toEqual({ id: '4999', values: [2499.5] });
});

it.each<[string, string, RegExp]>([
  ['an empty file', '', /items\.csv is empty/],
  ['a missing column', 'sku,f_1\n', /no such column \(got "id"; allowed: sku, f_1\)/],
  ['no features', 'id,g_1\n', /no columns of features \(got "f_"; allowed: id, g_1\)/],
  ['two columns of one name', 'id,f_1,f_1\n', /named twice|two columns of one name/],
  [
    'a text in place of a number',
    'id,f_1\n1,2\n3,cheap\n',
    /items\.csv line 3, column "f_1": no finite number \(got "cheap"/,
  ],
  ['an empty cell', 'id,f_1\n1,\n', /line 2, column "f_1": no finite number \(got ""/],
  ['NaN', 'id,f_1\n1,NaN\n', /line 2, column "f_1"/],
  ['a hexadecimal number', 'id,f_1\n1,0x10\n', /line 2, column "f_1"/],
  ['what FP32 does not hold', 'id,f_1\n1,1e39\n', /line 2, column "f_1": no finite number \(got "1e39"/],
  ['no id', 'id,f_1\n1,2\n,3\n', /line 3, column "id": there is no id/],
  ['a line with a cell too few', 'id,f_1,f_2\n1,2,3\n4,5\n', /items\.csv is no CSV: .*line 3/],
  ['a quote that does not end', 'id,f_1\n"1,2\n', /items\.csv is no CSV: /],
])('refuses %s', async (_, text, message) => {
  const error: unknown = await readAll(text).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'INVALID_CONFIG', message: expect.stringMatching(message) });
});
