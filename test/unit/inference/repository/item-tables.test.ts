import { realpathSync } from 'node:fs';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { growingRepository } from '../../../../src/inference/repository/growing-repository.ts';
import {
  type ModelRepository,
  openRepository,
} from '../../../../src/inference/repository/open-repository.ts';
import { temporaryFolder } from '../../cli/temporary-folder.ts';
import { buildTable } from '../items/table.fixture.ts';
import { toyFiles, writeVersion } from '../toy-model.ts';

const ROWS = {
  ids: ['1', '2'],
  rows: [
    [1, 2, 3],
    [4, 5, 6],
  ],
};
const TABLE = { name: 'catalogue', unknown: 'default' };

/** A repository of toy versions, each with the keys of its item input or none. */
async function writeToys(root: string, tables: readonly (object | undefined)[]): Promise<void> {
  for (const [i, table] of tables.entries()) {
    const files = toyFiles(i + 1);
    const inputs = files.config.inputs.map((input) =>
      input['name'] === 'item' && table !== undefined ? { ...input, ...table } : input,
    );
    await writeVersion(root, { ...files, config: { ...files.config, inputs } });
  }
}

async function openToys(...tables: (object | undefined)[]): Promise<ModelRepository> {
  const root = temporaryFolder().path('models');
  await writeToys(root, tables);
  return openRepository(root);
}

function itemInput(repository: ModelRepository) {
  return repository.families[0]?.contract.inputs.find(({ name }) => name === 'item');
}

describe('a family', () => {
  it('takes ids alone where all of its versions have a table', async () => {
    const repository = await openToys({ table: TABLE }, { table: { ...TABLE, unknown: 'reject' } });
    expect(repository.refused).toEqual([]);
    expect(itemInput(repository)).toMatchObject({ required: false, byIds: true });
  });

  it('wants rows while one of its versions has none', async () => {
    const repository = await openToys({ table: TABLE }, undefined);
    expect(repository.refused).toEqual([]);
    expect(itemInput(repository)).toMatchObject({ required: true });
  });

  it('that takes ids alone refuses a published version without a table', async () => {
    const folder = growingRepository(await openToys({ table: TABLE }));
    const root = temporaryFolder().path('published');
    await writeToys(root, [undefined, undefined]);
    const other = await openRepository(root);
    expect(() => folder.add(other, 'toy', '2')).toThrow(/toy\/2 .*it has no item table for item/);
  });
});

it.each([
  [
    'a name that leads elsewhere',
    { table: { ...TABLE, name: '../x' } },
    /inputs\[4\]\.table\.name: must be lower-case/,
  ],
  ['no word on unknown ids', { table: { name: 'catalogue' } }, /inputs\[4\]\.table\.unknown/],
  [
    'a side that is not the candidates',
    { side: 'request', axes: ['request', 'feature'], table: TABLE },
    /only a candidate input of FP32/,
  ],
  ['whole numbers', { datatype: 'INT64', table: TABLE }, /only a candidate input of FP32/],
])('a config with %s is refused', async (_, change, message) => {
  const { refused } = await openToys(change);
  expect(refused.map(({ error }) => error.message)).toEqual([expect.stringMatching(message)]);
});

describe('the tables of a version', () => {
  it('are loaded once, refused with the reason, and tried again', async () => {
    const repository = await openToys({ table: TABLE });
    const version = repository.version('toy', '1');
    await expect(repository.itemTables(version)).rejects.toThrow(/items\.catalogue\.json cannot be read/);
    const place = { root: realpathSync(repository.root), folder: 'toy/1', table: 'catalogue' };
    await buildTable(place, { ids: ['1'], rows: [[1, 2]] });
    await expect(repository.itemTables(version)).rejects.toThrow(
      /another width than its input \(got "2 columns"; allowed: 3\)/,
    );
    await buildTable(place, ROWS);
    const tables = await repository.itemTables(version);
    expect(await repository.itemTables(version)).toBe(tables);
    expect(tables.get('catalogue').label).toBe('catalogue@1');
  });

  it('are taken anew from the folder, and kept where what lies there is refused', async () => {
    const repository = await openToys({ table: TABLE });
    const place = { root: repository.root, folder: join('toy', '1'), table: 'catalogue' };
    await buildTable(place, ROWS);
    const tables = await repository.itemTables(repository.version('toy', '1'));
    expect(await repository.renewItemTables()).toEqual([]);
    await buildTable(place, { ...ROWS, version: '2' });
    expect(await repository.renewItemTables()).toEqual([
      {
        version: 'toy@1',
        table: 'catalogue',
        status: 'renewed',
        from: 'catalogue@1',
        to: 'catalogue@2',
        rows: 2,
      },
    ]);
    await buildTable(place, { ids: ['1'], rows: [[1]], version: '3' });
    expect(await repository.renewItemTables()).toMatchObject([
      { status: 'refused', error: { code: 'INVALID_MODEL' } },
    ]);
    const [refused] = await repository.renewItemTables();
    expect(await repository.renewItemTables()).toEqual([refused]);
    expect(tables.get('catalogue').label).toBe('catalogue@2');
    await buildTable(place, { ...ROWS, version: '4' });
    await truncate(join(place.root, place.folder, 'items.catalogue.bin'), 8);
    expect(await repository.renewItemTables()).toMatchObject([
      { status: 'refused', error: { message: expect.stringContaining('is cut short') } },
    ]);
    await buildTable(place, { ...ROWS, version: '4' });
    expect(await repository.renewItemTables()).toMatchObject([{ status: 'renewed', to: 'catalogue@4' }]);
    expect(await repository.renewItemTables()).toEqual([]);
  });
});
