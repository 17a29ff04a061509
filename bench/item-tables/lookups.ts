import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { Tensor } from '../../src/core/request/tensor.ts';
import type { ItemTable } from '../../src/inference/items/item-table.ts';
import { percentile } from '../pipeline/statistics.ts';
import { idOf, numberOf, type TableShape } from './tables.ts';

export const LOOKUP_ROWS = 256;
const REQUESTS = 800;
const ROUNDS = 3;

/** How ids are drawn: all alike, or by Zipf's law, the nth most popular in proportion to 1/n. */
export type Draw = 'even' | 'popular';

export interface LookupTimes {
  /** Finding the rows of one request by their ids, and writing them into a batch. */
  lookupUs: number;
  /** Writing alone, the places known: what memory and copying take. */
  copyUs: number;
}

/** Median times over requests that share no rows but by chance. */
export function timeLookups(table: ItemTable, shape: TableShape, draw: Draw): LookupTimes {
  const requests = makeRequests(shape, draw);
  const slab = new ArrayBuffer(4 * LOOKUP_ROWS * shape.width);
  const lookups: number[] = [];
  const copies: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const ids of requests) {
      const startedMs = performance.now();
      const found = table.find(ids, LOOKUP_ROWS);
      table.write(found.rows, slab, 0);
      lookups.push((performance.now() - startedMs) * 1_000);
      if (found.unknown > 0) throw new Error(`${found.firstUnknown} is not in the table`);
    }
    for (const { rows } of requests.map((ids) => table.find(ids, LOOKUP_ROWS))) {
      const startedMs = performance.now();
      table.write(rows, slab, 0);
      copies.push((performance.now() - startedMs) * 1_000);
    }
  }
  return { lookupUs: percentile(lookups, 0.5), copyUs: percentile(copies, 0.5) };
}

function makeRequests(shape: TableShape, draw: Draw): Tensor[] {
  const random = seededRandom(2).stream(draw);
  const { rows } = shape;
  // The inverse of the integral of 1/x; popular items lie anywhere in the table.
  const rowOf = (): number =>
    draw === 'even' ? random.below(rows) : (Math.floor(rows ** random.next()) * 7_919) % rows;
  return Array.from({ length: REQUESTS }, () => {
    const drawn = Array.from({ length: LOOKUP_ROWS }, rowOf);
    if (shape.ids === 'texts') return textTensor(drawn.map((row) => idOf(shape, row)));
    const contents = Buffer.from(BigInt64Array.from(drawn, (row) => BigInt(numberOf(row))).buffer);
    return { name: 'ids', datatype: 'INT64', shape: [LOOKUP_ROWS], contents };
  });
}

function textTensor(ids: readonly string[]): Tensor {
  const contents = Buffer.concat(
    ids.map((id) => {
      const element = Buffer.alloc(4 + id.length);
      element.writeUInt32LE(id.length);
      element.write(id, 4, 'latin1');
      return element;
    }),
  );
  return { name: 'ids', datatype: 'BYTES', shape: [ids.length], contents };
}
