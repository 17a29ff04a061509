import { fork } from 'node:child_process';
import { join } from 'node:path';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { ItemTableWriter } from '../../src/inference/items/item-table-writer.ts';
import type { Manifest } from '../../src/inference/items/manifest.ts';

export const FOLDER = 'bench/1';
const SEED = 1;

export interface TableShape {
  name: string;
  rows: number;
  width: number;
  datatype: 'float32' | 'int8';
  /** Text ids begin with `sku-`. */
  ids: 'numbers' | 'texts';
}

/** The nth id: numbers spread over 53 bits. */
export function numberOf(row: number): number {
  return (row * 9_007_199_254 + 17) % 9_007_199_254_740_881;
}

export function idOf({ ids }: Pick<TableShape, 'ids'>, row: number): string {
  return ids === 'numbers' ? String(numberOf(row)) : `sku-${numberOf(row)}`;
}

/** Builds a table of made-up rows. */
export async function buildTable(
  root: string,
  shape: TableShape,
): Promise<{ manifest: Manifest; rowsPerSecond: number }> {
  const { name, rows, width, datatype } = shape;
  const random = seededRandom(SEED).stream(name);
  const noise = Float32Array.from({ length: 1 << 16 }, () => random.next() - 0.5);
  const startedMs = performance.now();
  const writer = await ItemTableWriter.open({
    ...{ folder: join(root, FOLDER), name, version: '1', datatype, defaultRow: { kind: 'mean' } },
    columns: Array.from({ length: width }, (_, column) => `f_${column}`),
  });
  for (let row = 0; row < rows; row += 1) {
    if (writer.isFull) await writer.flush();
    const start = (row * 31) % (noise.length - width);
    writer.add(idOf(shape, row), noise.subarray(start, start + width));
  }
  const manifest = await writer.finish();
  return { manifest, rowsPerSecond: (rows * 1_000) / (performance.now() - startedMs) };
}

/** In a process of its own. */
export function memoryOf(root: string, table: string): Promise<{ grownBytes: number; loadMs: number }> {
  return new Promise((resolve, reject) => {
    const child = fork(join(import.meta.dirname, 'load-one.ts'), [root, table], {
      execArgv: ['--expose-gc'],
    });
    child.once('message', (answer) => resolve(answer as { grownBytes: number; loadMs: number }));
    child.once('exit', (code) => reject(new Error(`loading ended with ${code}`)));
  });
}
