import { MillraceError } from '../core/errors.ts';
import { checkIds } from '../core/request/candidate-ids.ts';
import type { Tensor } from '../core/request/tensor.ts';
import type { ItemTableUse } from '../ports/accelerator.ts';
import type { SentInput } from './input-layout.ts';
import type { FoundRows } from './items/item-table.ts';
import type { VersionTables } from './items/version-tables.ts';
import type { TableInput } from './repository/model-version.ts';

/** The rows of one candidate input: as they were sent, or where they lie in an item table. */
export type CandidateRows = Uint8Array | FoundRows;

/**
 * Finds the rows of the candidates [0, count) by their ids.
 * @throws MillraceError INVALID_TENSOR for ids that are none; UNKNOWN_ITEM where the model refuses ids that the table does not have
 */
export function rowsFromTable(
  { table: name, unknown: onUnknown, input }: TableInput,
  ids: Tensor | null | undefined,
  tables: VersionTables,
  count: number,
): FoundRows {
  if (ids === null || ids === undefined)
    throw new MillraceError('INVALID_TENSOR', 'an input is missing', {
      allowed: `${input}, or candidateIds`,
    });
  checkIds(ids, count);
  const found = tables.get(name).find(ids, count);
  if (found.unknown === 0 || onUnknown === 'default') return found;
  throw new MillraceError(
    'UNKNOWN_ITEM',
    `the item table ${found.table.label} has no row for ${found.unknown} of ${count} ids, the first of them`,
    { value: found.firstUnknown, advice: 'Leave the item out, send its row, or build a table that has it.' },
  );
}

/** Writes the rows into a batch's tensor. @returns the offset after them */
export function putRows(slab: ArrayBuffer, at: number, rows: CandidateRows, rowBytes: number): number {
  if (rows instanceof Uint8Array) {
    new Uint8Array(slab).set(rows, at);
    return at + rows.length;
  }
  rows.table.write(rows.rows, slab, at);
  return at + rows.rows.length * rowBytes;
}

/** The bytes of the rows, for whoever does not pack them. */
export function bytesOfRows(rows: CandidateRows, { rowBytes }: SentInput): Uint8Array {
  if (rows instanceof Uint8Array) return rows;
  const bytes = new ArrayBuffer(rows.rows.length * rowBytes);
  putRows(bytes, 0, rows, rowBytes);
  return new Uint8Array(bytes);
}

/** What results say of it; undefined where all rows were sent. */
export function tableUse(candidate: readonly CandidateRows[]): ItemTableUse | undefined {
  const found = candidate.flatMap((rows) => (rows instanceof Uint8Array ? [] : [rows]));
  if (found.length === 0) return undefined;
  return {
    tables: [...new Set(found.map(({ table }) => table.label))],
    unknownIds: Math.max(...found.map(({ unknown }) => unknown)),
  };
}
