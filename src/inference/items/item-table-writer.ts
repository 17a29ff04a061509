import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { HashedFile } from './hashed-file.ts';
import { IdColumn } from './id-column.ts';
import type { ItemIndex } from './item-index.ts';
import { layoutOf, type Manifest, SCALE_MAX } from './manifest.ts';
import { manifestFile, rowsFile } from './read-item-table.ts';

const INT8_MAX = 127;
const CHUNK_VALUES = 256 * 1024;
const SMALLEST_FP32 = 2 ** -149;

/** What the row of unknown ids holds: the mean of each column, zeros, or the row of one id. */
export type DefaultRow = { kind: 'mean' } | { kind: 'zeros' } | { kind: 'item'; id: string };

export interface ItemTableOptions {
  /** The version's folder. */
  folder: string;
  name: string;
  version: string;
  columns: readonly string[];
  datatype: 'float32' | 'int8';
  defaultRow: DefaultRow;
}

/**
 * Builds a table row by row. Memory holds the ids, and of the rows a megabyte; files are written aside and renamed into place when they are whole, so
 * that whoever reads the folder meanwhile finds the table before, or this one.
 */
export class ItemTableWriter {
  readonly #options: ItemTableOptions;
  /** Of all rows so far, FP32. */
  readonly #spool: HashedFile;
  readonly #ids = new IdColumn();
  readonly #width: number;
  readonly #sums: Float64Array;
  readonly #largest: Float64Array;
  readonly #chunk: Float32Array<ArrayBuffer>;
  #inChunk = 0;
  #rows = 0;
  #defaultItem: number[] | undefined;

  private constructor(options: ItemTableOptions, spool: HashedFile) {
    this.#options = options;
    this.#spool = spool;
    this.#width = options.columns.length;
    this.#sums = new Float64Array(this.#width);
    this.#largest = new Float64Array(this.#width);
    this.#chunk = new Float32Array(Math.max(1, Math.floor(CHUNK_VALUES / this.#width)) * this.#width);
  }

  static async open(options: ItemTableOptions): Promise<ItemTableWriter> {
    await mkdir(options.folder, { recursive: true });
    return new ItemTableWriter(options, await HashedFile.create(aside(options.folder)));
  }

  get rows(): number {
    return this.#rows;
  }

  /** True where `flush` has to come before the next row. */
  get isFull(): boolean {
    return this.#inChunk === this.#chunk.length;
  }

  /** @param values finite as FP32, one per column @throws MillraceError INVALID_CONFIG */
  add(id: string, values: ArrayLike<number>): void {
    this.#ids.add(id);
    const { defaultRow } = this.#options;
    for (let column = 0; column < this.#width; column += 1) {
      const value = Math.fround(values[column] ?? Number.NaN);
      this.#chunk[this.#inChunk + column] = value;
      this.#sums[column] = (this.#sums[column] ?? 0) + value;
      if (Math.abs(value) > (this.#largest[column] ?? 0)) this.#largest[column] = Math.abs(value);
    }
    if (defaultRow.kind === 'item' && defaultRow.id === id)
      this.#defaultItem = [...this.#chunk.subarray(this.#inChunk, this.#inChunk + this.#width)];
    this.#inChunk += this.#width;
    this.#rows += 1;
  }

  async flush(): Promise<void> {
    await this.#spool.write(new Uint8Array(this.#chunk.buffer, 0, 4 * this.#inChunk));
    this.#inChunk = 0;
  }

  /** @throws MillraceError INVALID_CONFIG for ids that are there twice, and a default row that is not there */
  async finish(): Promise<Manifest> {
    const { columns, datatype, name, version } = this.#options;
    const index = this.#ids.index();
    if (this.isFull) await this.flush();
    this.#chunk.set(this.#default(), this.#inChunk);
    this.#inChunk += this.#width;
    await this.flush();
    const { ids, buckets, idBytes } = index;
    const shape = {
      rows: this.#rows,
      columns: [...columns],
      datatype,
      ids,
      idBytes: idBytes.length,
      buckets,
    };
    const scales = datatype === 'int8' ? Array.from(this.#largest, scaleOf) : undefined;
    const rows = scales === undefined ? this.#spool : await this.#quantised(scales);
    try {
      await appendIndex(rows, shape, index);
      const bytes = rows.bytes;
      const digest = await rows.end();
      const described = { format: 1 as const, name, version, ...shape, bytes, digest };
      const manifest = scales === undefined ? described : { ...described, scales };
      await this.#place(rows.path, manifest);
      return manifest;
    } finally {
      await rows.discard();
      await this.#spool.discard();
    }
  }

  /** What was written so far goes. */
  async discard(): Promise<void> {
    await this.#spool.discard();
  }

  #default(): ArrayLike<number> {
    const { defaultRow } = this.#options;
    switch (defaultRow.kind) {
      case 'zeros':
        return new Float64Array(this.#width);
      case 'mean':
        return this.#sums.map((sum) => sum / Math.max(1, this.#rows));
      case 'item':
        if (this.#defaultItem !== undefined) return this.#defaultItem;
        throw new MillraceError('INVALID_CONFIG', 'no row has the id of the default row', {
          value: defaultRow.id,
          allowed: 'an id of the table, mean, zeros',
        });
      default:
        return defaultRow satisfies never;
    }
  }

  /** The nearest of 255 multiples of the column's scale: off by half of it at most. */
  async #quantised(scales: readonly number[]): Promise<HashedFile> {
    const file = await HashedFile.create(aside(this.#options.folder));
    try {
      for await (const piece of this.#spool.read(4 * this.#width)) {
        const values = new Float32Array(piece.buffer);
        await file.write(
          new Uint8Array(
            Int8Array.from(values, (value, i) => Math.round(value / (scales[i % this.#width] ?? 1))).buffer,
          ),
        );
      }
    } catch (error) {
      await file.discard();
      throw error;
    }
    return file;
  }

  /** Rows first: a reader that comes in between refuses the pair, and looks again. */
  async #place(rows: string, manifest: Manifest): Promise<void> {
    const { folder, name } = this.#options;
    const description = aside(folder);
    try {
      await writeFile(description, `${JSON.stringify(manifest)}\n`, { flag: 'wx' });
      await rename(rows, join(folder, rowsFile(name)));
      await rename(description, join(folder, manifestFile(name)));
    } finally {
      await rm(description, { force: true });
    }
  }
}

/** 1 where the column is all zeros, so that nothing is divided by 0; never so large that 127 times it is no FP32. */
function scaleOf(largest: number): number {
  if (largest === 0) return 1;
  return Math.min(SCALE_MAX, Math.max(SMALLEST_FP32, Math.fround(largest / INT8_MAX)));
}

async function appendIndex(
  file: HashedFile,
  shape: Parameters<typeof layoutOf>[0],
  { directory, rowOf, idOffsets, idBytes }: ItemIndex,
): Promise<void> {
  const layout = layoutOf(shape);
  const parts: [number, Uint32Array | Uint8Array][] = [
    [layout.directory, directory],
    [layout.rowOf, rowOf],
    [layout.idOffsets, idOffsets],
    [layout.ids, idBytes],
  ];
  for (const [at, { buffer, byteOffset, byteLength }] of parts) {
    await file.padTo(at);
    await file.write(new Uint8Array(buffer, byteOffset, byteLength));
  }
  await file.padTo(layout.bytes);
}

function aside(folder: string): string {
  return join(folder, `.items-${randomUUID()}`);
}
