import { createReadStream, type ReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { CsvError, type Parser, parse } from 'csv-parse';
import { MillraceError } from '../../core/errors.ts';
import type { ItemColumns, ItemRow, ItemSource } from '../../ports/item-source.ts';
import { badId, badValue, type FoundColumns, findColumns, isFinite32 } from './columns.ts';

const ROWS_AT_ONCE = 1_024;
const RECORD_BYTES_MAX = 1024 * 1024;
const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/** A record, and the line of the file that it ends on. */
interface Line {
  record: string[];
  info: { lines: number };
}

/** A CSV file (RFC 4180, UTF-8, with a line of column names), read as a stream. @throws MillraceError INVALID_CONFIG */
export async function openCsv(path: string, wanted: ItemColumns): Promise<ItemSource> {
  const { size } = await stat(path);
  const file = createReadStream(path);
  const parser = file.pipe(parse({ bom: true, info: true, max_record_size: RECORD_BYTES_MAX }));
  file.once('error', (error) => parser.destroy(error));
  const source = new CsvSource(basename(path), file, parser, wanted, size);
  await source.readHeader();
  return source;
}

class CsvSource implements ItemSource {
  readonly total: number;
  readonly #name: string;
  readonly #file: ReadStream;
  readonly #lines: AsyncIterator<Line>;
  readonly #wanted: ItemColumns;
  #columns: readonly string[] = [];
  #found: FoundColumns = { id: 0, features: [] };

  constructor(name: string, file: ReadStream, parser: Parser, wanted: ItemColumns, total: number) {
    this.#name = name;
    this.#file = file;
    this.#lines = (parser as AsyncIterable<Line>)[Symbol.asyncIterator]();
    this.#wanted = wanted;
    this.total = total;
  }

  get columns(): readonly string[] {
    return this.#columns;
  }

  done(): number {
    return this.#file.bytesRead;
  }

  async readHeader(): Promise<void> {
    const header = await this.#next();
    if (header === undefined)
      throw new MillraceError('INVALID_CONFIG', `${this.#name} is empty`, {
        allowed: 'a line of column names, then items',
      });
    this.#found = findColumns(this.#name, header.record, this.#wanted);
    this.#columns = this.#found.features.map((at) => header.record[at] ?? '');
  }

  async *rows(): AsyncGenerator<ItemRow[]> {
    let rows: ItemRow[] = [];
    for (let line = await this.#next(); line !== undefined; line = await this.#next()) {
      rows.push(this.#itemOf(line));
      if (rows.length < ROWS_AT_ONCE) continue;
      yield rows;
      rows = [];
    }
    if (rows.length > 0) yield rows;
  }

  async close(): Promise<void> {
    this.#file.destroy();
  }

  async #next(): Promise<Line | undefined> {
    try {
      const { value, done } = await this.#lines.next();
      return done === true ? undefined : value;
    } catch (cause) {
      if (!(cause instanceof CsvError)) throw cause;
      throw new MillraceError('INVALID_CONFIG', `${this.#name} is no CSV: ${cause.message}`, {
        advice:
          'Quote cells that hold commas, quotes or line feeds; give every line as many cells as there are columns.',
        cause,
      });
    }
  }

  #itemOf({ record, info }: Line): ItemRow {
    const where = `${this.#name} line ${info.lines}`;
    const id = record[this.#found.id] ?? '';
    if (id === '') throw badId(where, this.#wanted.id);
    const values = this.#found.features.map((at, column) => {
      const text = record[at] ?? '';
      const value = NUMBER.test(text) ? Number(text) : Number.NaN;
      if (!isFinite32(value)) throw badValue(where, this.#columns[column] ?? '', text);
      return value;
    });
    return { id, values };
  }
}
