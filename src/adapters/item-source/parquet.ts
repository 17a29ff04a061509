import { basename } from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet';
import { MillraceError } from '../../core/errors.ts';
import type { ItemColumns, ItemRow, ItemSource } from '../../ports/item-source.ts';
import { badId, badValue, type FoundColumns, findColumns, isFinite32 } from './columns.ts';

const ROWS_AT_ONCE = 1_024;

/** Snappy, the usual one, is hyparquet's own. */
const COMPRESSORS: Compressors = {
  GZIP: (bytes) => new Uint8Array(gunzipSync(bytes)),
  ZSTD: (bytes) => new Uint8Array(zstdDecompressSync(bytes)),
  BROTLI: (bytes) => new Uint8Array(brotliDecompressSync(bytes)),
};

/** A Parquet file, one row group in memory at a time, column after column. @throws MillraceError INVALID_CONFIG */
export async function openParquet(path: string, wanted: ItemColumns): Promise<ItemSource> {
  const name = basename(path);
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => unreadable(name, cause));
  const fields = parquetSchema(metadata).children;
  const found = findColumns(
    name,
    fields.map(({ element }) => element.name),
    wanted,
  );
  const nested = found.features.map((at) => fields[at]).find((field) => (field?.children.length ?? 0) > 0);
  if (nested !== undefined)
    throw new MillraceError('INVALID_CONFIG', `${name}: a column of features holds lists or records`, {
      value: nested.element.name,
      allowed: 'columns of numbers',
      advice: 'Write each of its numbers into a column of its own.',
    });
  return new ParquetSource(
    name,
    file,
    metadata,
    wanted,
    found,
    fields.map(({ element }) => element.name),
  );
}

class ParquetSource implements ItemSource {
  readonly columns: readonly string[];
  readonly total: number;
  readonly #name: string;
  readonly #file: AsyncBuffer;
  readonly #metadata: FileMetaData;
  readonly #id: string;
  #done = 0;

  constructor(
    name: string,
    file: AsyncBuffer,
    metadata: FileMetaData,
    wanted: ItemColumns,
    found: FoundColumns,
    names: readonly string[],
  ) {
    this.#name = name;
    this.#file = file;
    this.#metadata = metadata;
    this.#id = wanted.id;
    this.columns = found.features.map((at) => names[at] ?? '');
    this.total = Number(metadata.num_rows);
  }

  done(): number {
    return this.#done;
  }

  async *rows(): AsyncGenerator<ItemRow[]> {
    let start = 0;
    for (const group of this.#metadata.row_groups) {
      const end = start + Number(group.num_rows);
      yield* this.#group(start, end);
      start = end;
    }
  }

  async close(): Promise<void> {}

  async *#group(start: number, end: number): AsyncGenerator<ItemRow[]> {
    const width = this.columns.length;
    const values = new Float32Array((end - start) * width);
    for (const [column, name] of this.columns.entries())
      await this.#column(name, start, end, (row, cell) => {
        const value = typeof cell === 'number' || typeof cell === 'bigint' ? Number(cell) : Number.NaN;
        if (!isFinite32(value)) throw badValue(this.#where(row), name, cell);
        values[(row - start) * width + column] = value;
      });
    const ids = new Array<string>(end - start);
    await this.#column(this.#id, start, end, (row, cell) => {
      if (typeof cell !== 'string' && typeof cell !== 'bigint' && !Number.isSafeInteger(cell))
        throw badId(this.#where(row), this.#id);
      ids[row - start] = String(cell);
    });
    for (let first = 0; first < ids.length; first += ROWS_AT_ONCE) {
      const some = ids.slice(first, first + ROWS_AT_ONCE);
      yield some.map((id, i) => ({
        id,
        values: values.subarray((first + i) * width, (first + i + 1) * width),
      }));
      this.#done += some.length;
    }
  }

  /** Every cell of one column in the rows [start, end). */
  async #column(
    name: string,
    start: number,
    end: number,
    take: (row: number, cell: unknown) => void,
  ): Promise<void> {
    const chunks: { from: number; cells: ArrayLike<unknown> }[] = [];
    await parquetRead({
      file: this.#file,
      metadata: this.#metadata,
      columns: [name],
      rowStart: start,
      rowEnd: end,
      compressors: COMPRESSORS,
      onChunk: ({ columnData, rowStart }) => chunks.push({ from: rowStart, cells: columnData }),
    }).catch((cause: unknown) => unreadable(this.#name, cause));
    let rows = 0;
    for (const { from, cells } of chunks)
      for (let i = 0; i < cells.length; i += 1) {
        if (from + i < start || from + i >= end) continue;
        take(from + i, cells[i]);
        rows += 1;
      }
    if (rows !== end - start)
      throw new MillraceError(
        'INVALID_CONFIG',
        `${this.#name}: column ${JSON.stringify(name)} is cut short`,
        {
          value: `${rows} rows`,
          allowed: `${end - start}`,
        },
      );
  }

  #where(row: number): string {
    return `${this.#name} row ${row + 1}`;
  }
}

function unreadable(name: string, cause: unknown): never {
  throw new MillraceError('INVALID_CONFIG', `${name} cannot be read as Parquet`, {
    advice: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}
