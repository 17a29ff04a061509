import { createHash } from 'node:crypto';
import { appendFile, readdir, readFile, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ItemTableCache } from '../../../../src/inference/items/item-table-cache.ts';
import { layoutOf, type Manifest } from '../../../../src/inference/items/manifest.ts';
import { readManifest, readRows, type TablePlace } from '../../../../src/inference/items/read-item-table.ts';
import { buildTable, tablePlace } from './table.fixture.ts';

const BYTES_MAX = 2 ** 20;
const GOOD = {
  ids: ['1', '2', '3'],
  rows: [
    [1, 2],
    [3, 4],
    [5, 6],
  ],
};
const TEXTS = { ...GOOD, ids: ['a', 'b', 'c'] };

async function read(place: TablePlace): Promise<void> {
  const { manifest } = await readManifest(place);
  await readRows(place, manifest, BYTES_MAX);
}

interface Files {
  place: TablePlace;
  bin: string;
  json: string;
  manifest: Manifest;
}

/** Changes bytes of the rows' file, and has the description name the changed ones. */
async function forge({ bin, json, manifest }: Files, change: (bytes: Buffer) => void): Promise<void> {
  const bytes = await readFile(bin);
  change(bytes);
  await writeFile(bin, bytes);
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  await writeFile(json, JSON.stringify({ ...manifest, digest }));
}

const describeAs = async ({ json, manifest }: Files, change: object): Promise<void> =>
  writeFile(json, JSON.stringify({ ...manifest, ...change }));

const cases: [string, (files: Files) => Promise<unknown>, RegExp, typeof GOOD?][] = [
  [
    'is cut short',
    ({ bin, manifest }) => truncate(bin, manifest.bytes - 1),
    /items\.catalogue\.bin is cut short/,
  ],
  ['is too long', ({ bin }) => appendFile(bin, 'x'), /longer than its description says/],
  [
    'has another digest',
    async ({ bin }) => {
      const bytes = await readFile(bin);
      bytes[0] = 1;
      await writeFile(bin, bytes);
    },
    /not the file that its description means/,
  ],
  [
    'holds NaN',
    (files) => forge(files, (bytes) => bytes.writeFloatLE(Number.NaN, 4 * 3)),
    /NaN or an infinity \(got "row 1, column f_1"/,
  ],
  [
    'has an id twice',
    (files) => forge(files, (bytes) => twice(files.manifest, bytes)),
    /has an id twice|another bucket/,
  ],
  [
    'names a row that is not there',
    (files) => forge(files, (bytes) => bytes.writeUInt32LE(3, layoutOf(files.manifest).rowOf)),
    /broken index: entry 0 names row 3/,
  ],
  [
    'names a row twice',
    (files) =>
      forge(files, (bytes) => {
        const { rowOf } = layoutOf(files.manifest);
        bytes.copy(bytes, rowOf, rowOf + 4, rowOf + 8);
      }),
    /broken index: entry 1 names row/,
  ],
  [
    'has buckets that leave rows out',
    (files) => forge(files, (bytes) => bytes.writeUInt32LE(1, layoutOf(files.manifest).directory)),
    /directory does not cover/,
  ],
  [
    'has ids that leave bytes out',
    (files) => forge(files, (bytes) => bytes.writeUInt32LE(1, layoutOf(files.manifest).idOffsets)),
    /ids do not cover/,
    TEXTS,
  ],
  ['is described as another table', (files) => describeAs(files, { name: 'other' }), /about another table/],
  [
    'is described with another size',
    (files) => describeAs(files, { rows: 4, idBytes: 32 }),
    /such a table has/,
  ],
  ['is described with no power of two', (files) => describeAs(files, { buckets: 3 }), /no power of two/],
  ['is described in another format', (files) => describeAs(files, { format: 2 }), /format/],
  ['is described with an unknown key', (files) => describeAs(files, { file: '../x' }), /unknown key file/],
  ['is described by no JSON', ({ json }) => writeFile(json, '{'), /is not JSON/],
  [
    'is a link out of the repository',
    async ({ bin }) => {
      const outside = join(tmpdir(), `outside-${process.pid}`);
      await rename(bin, outside);
      await symlink(outside, bin);
    },
    /link out of the model repository/,
  ],
  [
    'lies in no folder of the repository',
    async ({ place }) => {
      place.folder = '../..';
      place.table = '../etc/passwd';
    },
    /cannot be read|link out/,
  ],
];

/** The id of the second entry becomes that of the first. */
function twice(manifest: Manifest, bytes: Buffer): void {
  const { ids } = layoutOf(manifest);
  bytes.copy(bytes, ids + 8, ids, ids + 8);
}

describe('a table is refused with the reason where it', () => {
  it.each(cases)('%s', async (_, spoil, message, of = GOOD) => {
    const place = tablePlace();
    const manifest = await buildTable(place, of);
    const path = (ending: string): string => join(place.root, place.folder, `items.catalogue.${ending}`);
    await spoil({ place, bin: path('bin'), json: path('json'), manifest });
    const error: unknown = await read(place).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'INVALID_MODEL', message: expect.stringMatching(message) });
  });

  it('is larger than allowed', async () => {
    const place = tablePlace();
    await buildTable(place, GOOD);
    await expect(new ItemTableCache(10).load(place)).rejects.toThrow(/too large/);
  });
});

it('a table with an id twice is not built, and leaves nothing behind', async () => {
  const place = tablePlace();
  for (const ids of [
    ['1', '2', '1'],
    ['a', 'b', 'a'],
  ])
    await expect(buildTable(place, { ...GOOD, ids })).rejects.toThrow(
      /rows 1 and 3 have the same id \(got "[1a]"/,
    );
  await expect(buildTable(place, { ...GOOD, defaultRow: { kind: 'item', id: '9' } })).rejects.toThrow(
    /no row has the id of the default row/,
  );
  expect(await readdir(join(place.root, place.folder))).toEqual([]);
});
