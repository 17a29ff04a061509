import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ItemTableCache } from '../../../src/inference/items/item-table-cache.ts';
import { textIds } from '../inference/items/table.fixture.ts';
import { edit } from '../inference/ranker-version.ts';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ITEMS = 'item_id,f_0,f_1\nsku-1,1,2\nsku-2,3,4\n';

async function readRow(folder: string, id: string): Promise<number[]> {
  const table = await new ItemTableCache().load({ root: folder, folder: 'toy/1', table: 'catalogue' });
  const slab = new ArrayBuffer(8);
  table.write(table.find(textIds([id]), 1).rows, slab, 0);
  return [...new Float32Array(slab)];
}

function place() {
  const folder = temporaryFolder();
  const input = folder.write('items.csv', ITEMS);
  const output = folder.path('toy/1');
  const build = (...more: string[]) =>
    millrace(['items', 'build', '--input', input, '--id', 'item_id', '--output', output, ...more]);
  return { folder, output, build };
}

it('builds a table that a model version can be given, and says what to put into its config', async () => {
  const { folder, output, build } = place();
  const { out, exitCode } = await build('--prefix', 'f_', '--table', 'catalogue', '--table-version', '7');
  expect(exitCode).toBe(0);
  expect(out).toContain('catalogue@7: 2 rows of 2 × float32, ids BYTES');
  expect(out).toContain('table: { name: catalogue, unknown: default }');
  const root = folder.path('.');
  expect(await readRow(root, 'sku-2')).toEqual([3, 4]);
  expect(await readRow(root, 'sku-9')).toEqual([2, 3]);
  expect(readdirSync(output).sort()).toEqual(['items.catalogue.bin', 'items.catalogue.json']);
});

it('takes the columns in the order named, int8, a default row, and prints JSON', async () => {
  const { folder, output, build } = place();
  const flags = ['--features', 'f_1,f_0', '--type', 'int8', '--default', 'id=sku-1', '--table', 'catalogue'];
  const { out } = await build(...flags, '--json');
  expect(JSON.parse(out)).toMatchObject({
    ...{ table: 'catalogue', rows: 2, columns: ['f_1', 'f_0'], datatype: 'int8', ids: 'BYTES' },
    files: [join(output, 'items.catalogue.json'), join(output, 'items.catalogue.bin')],
  });
  const [first = 0, second = 0] = await readRow(folder.path('.'), 'sku-9');
  expect(first).toBeCloseTo(2, 1);
  expect(second).toBeCloseTo(1, 1);
});

it('reads the name and the width of the table from the config of the version', async () => {
  const { output, build } = place();
  cpSync('models/repository/ranker/1', output, { recursive: true });
  edit(output, 'config.yaml', (text) =>
    text.replace(
      'axes: [candidate, feature] }',
      'axes: [candidate, feature], table: { name: shop, unknown: reject } }',
    ),
  );
  const { err, exitCode } = await build('--prefix', 'f_');
  expect(exitCode).toBe(2);
  expect(err).toContain(
    'the table shop would have another width than the input item (got "2 columns"; allowed: 32)',
  );
});

it.each([
  ['no features', [], /which columns are features\?/],
  ['both ways to name them', ['--features', 'f_0', '--prefix', 'f_'], /which columns are features\?/],
  ['no table', ['--prefix', 'f_'], /which table is it\?.*--table/],
  [
    'a table of an odd name',
    ['--prefix', 'f_', '--table', '../x'],
    /no table can have this name \(got "\.\.\/x"/,
  ],
  ['a type that there is not', ['--prefix', 'f_', '--table', 'a', '--type', 'int4'], /float32, int8/],
  [
    'a default row that there is not',
    ['--prefix', 'f_', '--table', 'a', '--default', 'best'],
    /mean, zeros, or id=<id>/,
  ],
  [
    'a file that is not there',
    ['--prefix', 'f_', '--table', 'a', '--input', 'none.csv'],
    /there is none of this name/,
  ],
  ['a file of another kind', ['--prefix', 'f_', '--table', 'a', '--input', 'items.xlsx'], /\.csv, \.parquet/],
])('refuses %s with exit code 2', async (_, flags, message) => {
  const { output, build } = place();
  const { err, exitCode } = await build(...flags);
  expect(exitCode).toBe(2);
  expect(err).toMatch(message);
  expect(existsSync(output) ? readdirSync(output) : []).toEqual([]);
});

it('leaves the table that was there where a line is refused, and names it', async () => {
  const { folder, output, build } = place();
  const flags = ['--prefix', 'f_', '--table', 'catalogue'];
  await build(...flags);
  const before = readFileSync(join(output, 'items.catalogue.json'), 'utf8');
  folder.write('items.csv', `${ITEMS}sku-3,5,cheap\n`);
  const { err, exitCode } = await build(...flags);
  expect(exitCode).toBe(2);
  expect(err).toContain('items.csv line 4, column "f_1": no finite number (got "cheap"');
  folder.write('items.csv', `${ITEMS}sku-1,5,6\n`);
  expect((await build(...flags)).err).toContain('rows 1 and 3 have the same id (got "sku-1"');
  expect(readFileSync(join(output, 'items.catalogue.json'), 'utf8')).toBe(before);
  expect(readdirSync(output).sort()).toEqual(['items.catalogue.bin', 'items.catalogue.json']);
});
