import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Tensor } from '../../../../src/core/request/tensor.ts';
import { HashedFile } from '../../../../src/inference/items/hashed-file.ts';
import { ItemTable } from '../../../../src/inference/items/item-table.ts';
import { ItemTableCache } from '../../../../src/inference/items/item-table-cache.ts';
import { readManifest, readRows } from '../../../../src/inference/items/read-item-table.ts';
import { buildTable, numberIds, type TestTable, tablePlace, textIds } from './table.fixture.ts';

const BYTES_MAX = 2 ** 30;
/** What comes before a batch's tensor in its slab. */
const BEFORE = 64;

async function readTable(of: TestTable): Promise<ItemTable> {
  const place = tablePlace();
  await buildTable(place, of);
  const { manifest } = await readManifest(place);
  return new ItemTable(manifest, await readRows(place, manifest, BYTES_MAX));
}

function lookUp(table: ItemTable, ids: Tensor): { rows: number[][]; unknown: number } {
  const count = ids.shape[0] ?? 0;
  const width = table.manifest.columns.length;
  const slab = new ArrayBuffer(BEFORE + 4 * count * width);
  const found = table.find(ids, count);
  table.write(found.rows, slab, BEFORE);
  const values = new Float32Array(slab, BEFORE);
  const rows = Array.from({ length: count }, (_, k) => [...values.subarray(k * width, (k + 1) * width)]);
  return { rows, unknown: found.unknown };
}

const finite = fc.float({ noNaN: true, noDefaultInfinity: true });
/** Any text, and what looks like a number but may not be the one way to write it. */
const anyId = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.constantFrom(
    '',
    '0',
    '00',
    '-0',
    '007',
    '7',
    '+7',
    '7.0',
    '1e3',
    ' 7',
    '9223372036854775808',
    'é',
    'e\u0301',
    '🜁',
  ),
);

function tables(id: fc.Arbitrary<string>): fc.Arbitrary<{ ids: string[]; rows: number[][] }> {
  return fc.integer({ min: 1, max: 9 }).chain((width) =>
    fc
      .uniqueArray(id, { maxLength: 40, selector: (text) => Buffer.from(text).toString('latin1') })
      .chain((ids) =>
        fc.record({
          ids: fc.constant(ids),
          rows: fc.array(fc.array(finite, { minLength: width, maxLength: width }), {
            minLength: ids.length,
            maxLength: ids.length,
          }),
        }),
      ),
  );
}

describe('an item table', () => {
  it.each([
    ['whole numbers', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)],
    ['any text', anyId],
  ] as const)('gives the rows that it was built from, for ids that are %s', async (_, id) => {
    await fc.assert(
      fc.asyncProperty(tables(id), async ({ ids, rows }) => {
        const table = await readTable({ ids, rows, columns: rows[0]?.length ?? 1 });
        const wellFormed = ids.map((text) => text.toWellFormed());
        expect(lookUp(table, textIds(wellFormed))).toEqual({ rows, unknown: 0 });
      }),
      { numRuns: 60 },
    );
  });

  it('takes a number and its decimal text for one id, and other ways to write it for other ids', async () => {
    const rows = [[1], [2], [3]];
    const numbers = await readTable({ ids: ['7', '-9', '9223372036854775807'], rows });
    const texts = await readTable({ ids: ['7', '-9', '007'], rows });
    expect([numbers.manifest.ids, texts.manifest.ids]).toEqual(['INT64', 'BYTES']);
    expect(lookUp(numbers, numberIds([7n, -9n, 2n ** 63n - 1n]))).toEqual({ rows, unknown: 0 });
    expect(lookUp(numbers, textIds(['7', '-9', '9223372036854775807']))).toEqual({ rows, unknown: 0 });
    expect(lookUp(texts, numberIds([7n, -9n, 8n]))).toEqual({ rows: [[1], [2], [2]], unknown: 1 });
    expect(lookUp(texts, textIds(['007', '07', '7']))).toEqual({ rows: [[3], [2], [1]], unknown: 1 });
    expect(lookUp(numbers, textIds(['007', '+7', '', '9223372036854775808'])).unknown).toBe(4);
    const zero = await readTable({ ids: ['0', '7'], rows: [[5], [7]] });
    expect(lookUp(zero, textIds(['zero', '0', '00', '7']))).toEqual({
      rows: [[6], [5], [6], [7]],
      unknown: 2,
    });
  });

  it.each([
    ['the mean', { kind: 'mean' }, [2, 3]],
    ['zeros', { kind: 'zeros' }, [0, 0]],
    ['the row of an item', { kind: 'item', id: 'b' }, [3, 4]],
  ] as const)('gives %s for an unknown id, and names the first one', async (_, defaultRow, expected) => {
    const table = await readTable({
      ids: ['a', 'b'],
      rows: [
        [1, 2],
        [3, 4],
      ],
      defaultRow,
    });
    const ids = textIds(['b', 'x', 'y']);
    expect(lookUp(table, ids)).toEqual({ rows: [[3, 4], expected, expected], unknown: 2 });
    expect(table.find(ids, 3).firstUnknown).toBe('x');
    expect(table.find(ids, 1)).toMatchObject({ unknown: 0, firstUnknown: undefined });
  });

  it('is off by half of a scale at most with int8, whatever the columns hold', async () => {
    await fc.assert(
      fc.asyncProperty(tables(fc.nat().map(String)), async ({ ids, rows }) => {
        const table = await readTable({ ids, rows, columns: rows[0]?.length ?? 1, datatype: 'int8' });
        const { scales = [] } = table.manifest;
        const found = lookUp(table, textIds(ids));
        expect(found.unknown).toBe(0);
        for (const [k, row] of rows.entries())
          for (const [column, value] of row.entries()) {
            const scale = scales[column] ?? Number.NaN;
            const error = Math.abs((found.rows[k]?.[column] ?? Number.NaN) - value);
            // FP32 rounds the product once more.
            expect(error).toBeLessThanOrEqual(scale / 2 + Math.abs(value) * 2 ** -23 + 2 ** -149);
          }
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['a table of one row', 1, 3],
    ['more candidates than are looked up at once', 900, 5],
    ['rows of which few fit into a copy', 40, 4_000],
    ['rows that end within a vector', 300, 259],
  ])('gives the rows of %s', async (_, count, width) => {
    const ids = Array.from({ length: count }, (__, n) => String(n * 1_000_003 - 7));
    const rows = ids.map((___, n) => Array.from({ length: width }, (____, column) => n * 8_192 + column));
    const table = await readTable({ ids, rows, defaultRow: { kind: 'zeros' } });
    const asked = [...ids, '5', ...ids.toReversed(), ...ids];
    const found = lookUp(table, numberIds(asked.map(BigInt)));
    expect(found.unknown).toBe(1);
    const zeros = new Array<number>(width).fill(0);
    const wanted = [...rows, zeros, ...rows.toReversed(), ...rows];
    const isOther = (row: number[], n: number): boolean =>
      row.some((value, column) => value !== wanted[n]?.[column]);
    expect(found.rows.findIndex(isOther)).toBe(-1);
  });

  it('finds every one of many ids, numbers and texts', async () => {
    const count = 20_000;
    const numbers = Array.from({ length: count }, (_, i) => String(i * 1_000_003));
    const rows = numbers.map((_, i) => [i, -i, i / 2]);
    const ofNumbers = await readTable({ ids: numbers, rows });
    const ofTexts = await readTable({ ids: numbers.map((id) => `sku-${id}`), rows });
    expect(lookUp(ofNumbers, numberIds(numbers.map(BigInt)))).toEqual({ rows, unknown: 0 });
    expect(lookUp(ofTexts, textIds(numbers.map((id) => `sku-${id}`)))).toEqual({ rows, unknown: 0 });
    expect(lookUp(ofTexts, textIds(numbers)).unknown).toBe(count);
  });
});

it('is loaded once for all who ask, and again once another one lies there', async () => {
  const place = tablePlace();
  const cache = new ItemTableCache();
  await buildTable(place, { ids: ['1'], rows: [[1, 2]], version: 'a' });
  const [first, second] = await Promise.all([cache.load(place), cache.load(place)]);
  expect(second).toBe(first);
  expect(await cache.load(place)).toBe(first);
  expect(first.label).toBe('catalogue@a');
  await buildTable(place, { ids: ['1'], rows: [[1, 2]], version: 'b' });
  const third = await cache.load(place);
  expect(third.label).toBe('catalogue@b');
  expect(lookUp(first, numberIds([1n])).rows).toEqual([[1, 2]]);
});

it('leaves nothing behind, whichever of its writes finds the disk full', async () => {
  const write = Object.getOwnPropertyDescriptor(HashedFile.prototype, 'write')?.value;
  let left = Number.POSITIVE_INFINITY;
  let writes = 0;
  const spy = vi.spyOn(HashedFile.prototype, 'write').mockImplementation(function (this: HashedFile, bytes) {
    writes += 1;
    left -= 1;
    return left < 0 ? Promise.reject(new Error('ENOSPC')) : write.call(this, bytes);
  });
  onTestFinished(() => spy.mockRestore());
  const table = { ids: ['a', 'b'], rows: [[1], [2]], datatype: 'int8' as const };
  await buildTable(tablePlace(), table);
  const all = writes;
  expect(all).toBeGreaterThan(3);
  for (let taken = 0; taken < all; taken += 1) {
    const place = tablePlace();
    left = taken;
    await expect(buildTable(place, table)).rejects.toThrow('ENOSPC');
    expect(readdirSync(join(place.root, place.folder))).toEqual([]);
  }
});
