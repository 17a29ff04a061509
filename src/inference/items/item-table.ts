import { int64Of } from '../../core/request/item-id.ts';
import type { Tensor } from '../../core/request/tensor.ts';
import { hashBytes } from './item-hash.ts';
import { bucketOf } from './item-index.ts';
import { ELEMENT_BYTES, layoutOf, type Manifest, shiftOf } from './manifest.ts';
import { type TableFunctions, tableFunctions } from './table-code.ts';
import { FOUND_AT_ONCE, scratchOf, type TableMemory, type TableScratch } from './table-memory.ts';

/** Where the candidates of one request lie in a table. */
export interface FoundRows {
  table: ItemTable;
  /** Of each candidate; that of the default row where its id is unknown. */
  rows: Uint32Array;
  unknown: number;
  /** The first unknown id, as text; undefined where all are known. */
  firstUnknown: string | undefined;
}

const CACHE_LINE_VALUES = 16;

/**
 * One item table in memory, for one thread at a time: a call's ids, places and rows lie behind the table. Finding and copying go over all candidates step
 * by step and not candidate by candidate: reads that do not wait for each other lie side by side, so that the processor has many under way at once.
 */
export class ItemTable {
  readonly manifest: Manifest;
  readonly #buffer: SharedArrayBuffer;
  readonly #shift: number;
  readonly #directory: Uint32Array;
  readonly #rowOf: Uint32Array;
  readonly #idOffsets: Uint32Array;
  readonly #idBytes: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly #scratch: TableScratch;
  /** UINT32, of the scratch. */
  readonly #scratchRows: Uint32Array;
  readonly #functions: TableFunctions;
  readonly #width: number;
  /** INT8 only, a column each. */
  readonly #scales: Float64Array;
  /** Aligned copies of ids that are looked up, and the buckets they may be in: used within one call. */
  #wanted = new Uint32Array(0);
  #from = new Uint32Array(0);
  #until = new Uint32Array(0);
  /** What was read ahead; it only keeps the reads from being left out. */
  #ahead = 0;

  constructor(manifest: Manifest, memory: TableMemory) {
    const layout = layoutOf(manifest);
    const { buffer } = memory;
    const { rows, columns, datatype, buckets, ids, idBytes } = manifest;
    const rowBytes = columns.length * ELEMENT_BYTES[datatype];
    this.manifest = manifest;
    this.#buffer = buffer;
    this.#width = columns.length;
    this.#scales = Float64Array.from(manifest.scales ?? []);
    this.#shift = shiftOf(buckets);
    this.#directory = new Uint32Array(buffer, layout.directory, buckets + 1);
    this.#rowOf = new Uint32Array(buffer, layout.rowOf, ids === 'BYTES' ? rows : 0);
    this.#idOffsets = new Uint32Array(buffer, layout.idOffsets, ids === 'BYTES' ? rows + 1 : 0);
    this.#idBytes = new Uint8Array(buffer, layout.ids, idBytes);
    this.#bytes = new Uint8Array(buffer);
    this.#scratch = scratchOf(manifest.bytes, rowBytes);
    this.#scratchRows = new Uint32Array(buffer, this.#scratch.rows, FOUND_AT_ONCE);
    const { directory, rowOf: entries } = layout;
    this.#functions = tableFunctions(
      { directory, entries, shift: this.#shift, nowhere: rows, rowBytes, scratch: this.#scratch },
      memory,
    );
  }

  /** As results name it. */
  get label(): string {
    return `${this.manifest.name}@${this.manifest.version}`;
  }

  /** @param ids INT64 [N] or BYTES [N], N ≥ `count`: a number and its decimal text are the same id */
  find(ids: Tensor, count: number): FoundRows {
    const rows = new Uint32Array(count);
    const isInt64 = ids.datatype === 'INT64';
    if (this.manifest.ids === 'BYTES') {
      const texts = isInt64 ? decimalsOf(ids.contents, count) : ids.contents;
      this.#findTexts(texts, rows);
    } else if (isInt64) this.#findInt64(ids.contents, rows);
    else this.#findDecimals(ids.contents, rows);
    const nowhere = this.manifest.rows;
    let unknown = 0;
    for (let k = 0; k < count; k += 1) if (rows[k] === nowhere) unknown += 1;
    const firstUnknown = unknown === 0 ? undefined : idText(ids, rows.indexOf(nowhere));
    return { table: this, rows, unknown, firstUnknown };
  }

  /** Writes the rows as FP32 [rows.length, width] at `offset`, a multiple of 8. */
  write(rows: Uint32Array, target: ArrayBuffer, offset: number): void {
    if (this.manifest.datatype === 'float32') this.#writeFloats(rows, target, offset);
    else this.#writeScaled(rows, target, offset);
  }

  #findInt64(contents: Uint8Array, rows: Uint32Array): void {
    for (let done = 0; done < rows.length; done += FOUND_AT_ONCE) {
      const count = Math.min(FOUND_AT_ONCE, rows.length - done);
      this.#bytes.set(contents.subarray(8 * done, 8 * (done + count)), this.#scratch.ids);
      this.#functions.find(count);
      rows.set(this.#scratchRows.subarray(0, count), done);
    }
  }

  /** Texts that are no numbers are in no such table. */
  #findDecimals(contents: Buffer, rows: Uint32Array): void {
    const values = new BigInt64Array(rows.length);
    const odd: number[] = [];
    let at = 0;
    for (let k = 0; k < rows.length; k += 1) {
      const start = at + 4;
      at = start + contents.readUInt32LE(at);
      const value = int64Of(contents.toString('latin1', start, at));
      if (value === undefined) odd.push(k);
      else values[k] = value;
    }
    this.#findInt64(new Uint8Array(values.buffer), rows);
    for (const k of odd) rows[k] = this.manifest.rows;
  }

  /** Each with its length before it. */
  #findTexts(contents: Buffer, rows: Uint32Array): void {
    const count = rows.length;
    this.#makeRoom(count);
    const [wanted, from, until] = [this.#wanted, this.#from, this.#until];
    let at = 0;
    for (let k = 0; k < count; k += 1) {
      const start = at + 4;
      at = start + contents.readUInt32LE(at);
      wanted[2 * k] = start;
      wanted[2 * k + 1] = at;
      from[k] = bucketOf(hashBytes(contents, start, at), this.#shift);
    }
    const directory = this.#directory;
    for (let k = 0; k < count; k += 1) {
      const bucket = from[k] ?? 0;
      from[k] = directory[bucket] ?? 0;
      until[k] = directory[bucket + 1] ?? 0;
    }
    this.#readTextsAhead(count);
    for (let k = 0; k < count; k += 1)
      rows[k] = this.#rowAmong(
        from[k] ?? 0,
        until[k] ?? 0,
        contents,
        wanted[2 * k] ?? 0,
        wanted[2 * k + 1] ?? 0,
      );
  }

  /** Where the texts of the first entries lie, then the texts. */
  #readTextsAhead(count: number): void {
    const [idOffsets, idBytes, rowOf, from] = [this.#idOffsets, this.#idBytes, this.#rowOf, this.#from];
    let ahead = 0;
    for (let k = 0; k < count; k += 1) {
      const entry = from[k] ?? 0;
      ahead ^= (idOffsets[entry] ?? 0) ^ (rowOf[entry] ?? 0);
    }
    for (let k = 0; k < count; k += 1) ahead ^= idBytes[idOffsets[from[k] ?? 0] ?? 0] ?? 0;
    this.#ahead ^= ahead;
  }

  #rowAmong(first: number, end: number, contents: Uint8Array, start: number, last: number): number {
    for (let entry = first; entry < end; entry += 1)
      if (this.#isId(entry, contents, start, last)) return this.#rowOf[entry] ?? this.manifest.rows;
    return this.manifest.rows;
  }

  #isId(entry: number, contents: Uint8Array, start: number, end: number): boolean {
    const idStart = this.#idOffsets[entry] ?? 0;
    if ((this.#idOffsets[entry + 1] ?? 0) - idStart !== end - start) return false;
    for (let i = start; i < end; i += 1) if (contents[i] !== this.#idBytes[idStart + i - start]) return false;
    return true;
  }

  #makeRoom(count: number): void {
    if (this.#from.length >= count) return;
    this.#wanted = new Uint32Array(2 * count);
    this.#from = new Uint32Array(count);
    this.#until = new Uint32Array(count);
  }

  /** Reads one value of each cache line of each row, so that the copy that follows finds them near. */
  #readAhead(rows: Uint32Array, rowBytes: number): void {
    const words = new Int32Array(
      this.#buffer,
      0,
      (this.#buffer.byteLength - (this.#buffer.byteLength % 4)) / 4,
    );
    const rowWords = rowBytes / 4;
    let ahead = 0;
    for (let k = 0; k < rows.length; k += 1) {
      const first = Math.floor((rows[k] ?? 0) * rowWords);
      for (let word = 0; word < rowWords; word += CACHE_LINE_VALUES) ahead ^= words[first + word] ?? 0;
    }
    this.#ahead ^= ahead;
  }

  #writeFloats(rows: Uint32Array, target: ArrayBuffer, offset: number): void {
    const { out, outRows } = this.#scratch;
    const rowBytes = 4 * this.#width;
    const into = new Uint8Array(target, offset, rows.length * rowBytes);
    for (let done = 0; done < rows.length; done += outRows) {
      const some = rows.subarray(done, done + outRows);
      this.#scratchRows.set(some);
      this.#functions.copy(some.length);
      into.set(this.#bytes.subarray(out, out + some.length * rowBytes), done * rowBytes);
    }
  }

  #writeScaled(rows: Uint32Array, target: ArrayBuffer, offset: number): void {
    this.#readAhead(rows, this.#width);
    const width = this.#width;
    const scales = this.#scales;
    const source = new Int8Array(this.#buffer, 0, (this.manifest.rows + 1) * width);
    const out = new Float32Array(target, offset, rows.length * width);
    let to = 0;
    for (let k = 0; k < rows.length; k += 1) {
      let from = (rows[k] ?? 0) * width;
      for (let column = 0; column < width; column += 1, from += 1, to += 1)
        out[to] = (source[from] ?? 0) * (scales[column] ?? 0);
    }
  }
}

/** INT64 ids as a tensor of their decimal texts. */
function decimalsOf(contents: Buffer, count: number): Buffer {
  const elements = Array.from({ length: count }, (_, k) => {
    const text = Buffer.from(`0000${contents.readBigInt64LE(8 * k)}`, 'latin1');
    text.writeUInt32LE(text.length - 4);
    return text;
  });
  return Buffer.concat(elements);
}

/** One id of a tensor of ids, as people write it. */
export function idText(ids: Tensor, position: number): string {
  if (ids.datatype === 'INT64') return ids.contents.readBigInt64LE(8 * position).toString();
  let at = 0;
  for (let skipped = 0; skipped < position; skipped += 1) at += 4 + ids.contents.readUInt32LE(at);
  return ids.contents.toString('utf8', at + 4, at + 4 + ids.contents.readUInt32LE(at));
}
