import { mkdtempSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Tensor } from '../../../../src/core/request/tensor.ts';
import { type DefaultRow, ItemTableWriter } from '../../../../src/inference/items/item-table-writer.ts';
import type { Manifest } from '../../../../src/inference/items/manifest.ts';
import type { TablePlace } from '../../../../src/inference/items/read-item-table.ts';

export interface TestTable {
  ids: readonly string[];
  /** One per id. */
  rows: readonly (readonly number[])[];
  columns?: number;
  datatype?: 'float32' | 'int8';
  defaultRow?: DefaultRow;
  version?: string;
}

export const TABLE = 'catalogue';

/** A repository's root with one version's folder for tables; gone after the test. */
export function tablePlace(folder = 'toy/1'): TablePlace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-items-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  return { root, folder, table: TABLE };
}

export async function buildTable({ root, folder, table }: TablePlace, of: TestTable): Promise<Manifest> {
  const width = of.columns ?? of.rows[0]?.length ?? 1;
  const writer = await ItemTableWriter.open({
    folder: join(root, folder),
    name: table,
    version: of.version ?? '1',
    columns: Array.from({ length: width }, (_, column) => `f_${column}`),
    datatype: of.datatype ?? 'float32',
    defaultRow: of.defaultRow ?? { kind: 'mean' },
  });
  try {
    for (const [row, id] of of.ids.entries()) {
      if (writer.isFull) await writer.flush();
      writer.add(id, of.rows[row] ?? []);
    }
    return await writer.finish();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

export function textIds(ids: readonly string[]): Tensor {
  const elements = ids.map((id) => {
    const bytes = Buffer.from(id);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  });
  return { name: 'candidateIds', datatype: 'BYTES', shape: [ids.length], contents: Buffer.concat(elements) };
}

export function numberIds(ids: readonly bigint[]): Tensor {
  const contents = Buffer.from(BigInt64Array.from(ids).buffer);
  return { name: 'candidateIds', datatype: 'INT64', shape: [ids.length], contents };
}
