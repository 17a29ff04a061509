import { MillraceError } from '../../core/errors.ts';
import { ID_BYTES_MAX, int64Of } from '../../core/request/item-id.ts';
import { type ItemIndex, indexBytes, indexInt64 } from './item-index.ts';

const ROWS_AT_START = 1_024;
const ALL_ID_BYTES_MAX = 2 ** 32 - 1;

/** The ids of a table that is being built, row after row: 8 bytes each while all are whole numbers, from the first other one on all as text. */
export class IdColumn {
  #rows = 0;
  #numbers: BigInt64Array | undefined = new BigInt64Array(ROWS_AT_START);
  #bytes = Buffer.alloc(0);
  #offsets = new Uint32Array(0);

  /** @throws MillraceError INVALID_CONFIG for one that is too long */
  add(id: string): void {
    if (Buffer.byteLength(id) > ID_BYTES_MAX)
      throw new MillraceError('INVALID_CONFIG', 'an id is too long', {
        value: id,
        allowed: `at most ${ID_BYTES_MAX} bytes of UTF-8`,
      });
    const number = this.#numbers === undefined ? undefined : int64Of(id);
    if (this.#numbers !== undefined && number !== undefined) this.#addNumber(this.#numbers, number);
    else this.#addText(id);
    this.#rows += 1;
  }

  /** @throws MillraceError INVALID_CONFIG where two rows have the same id */
  index(): ItemIndex {
    const index =
      this.#numbers === undefined
        ? indexBytes(this.#bytes, this.#offsets.subarray(0, this.#rows + 1))
        : indexInt64(this.#numbers.slice(0, this.#rows));
    if (!('first' in index)) return index;
    const { first, second } = index;
    throw new MillraceError('INVALID_CONFIG', `rows ${first + 1} and ${second + 1} have the same id`, {
      value: this.#textOf(first),
      allowed: 'one row per id',
      advice: 'Rows count from 1, the line of column names left out. Keep one of them.',
    });
  }

  #addNumber(numbers: BigInt64Array, number: bigint): void {
    numbers[this.#rows] = number;
    if (this.#rows + 1 < numbers.length) return;
    this.#numbers = new BigInt64Array(2 * numbers.length);
    this.#numbers.set(numbers);
  }

  #addText(id: string): void {
    this.#toText();
    const start = this.#offsets[this.#rows] ?? 0;
    const end = start + Buffer.byteLength(id);
    if (end > ALL_ID_BYTES_MAX)
      throw new MillraceError('INVALID_CONFIG', 'the ids are too long together', {
        allowed: `at most ${ALL_ID_BYTES_MAX} bytes of UTF-8`,
      });
    if (end > this.#bytes.length) this.#bytes = grown(this.#bytes, end);
    this.#bytes.write(id, start, 'utf8');
    if (this.#rows + 1 >= this.#offsets.length) {
      const offsets = new Uint32Array(2 * this.#offsets.length);
      offsets.set(this.#offsets);
      this.#offsets = offsets;
    }
    this.#offsets[this.#rows + 1] = end;
  }

  #toText(): void {
    const numbers = this.#numbers;
    if (numbers === undefined) return;
    this.#numbers = undefined;
    this.#offsets = new Uint32Array(2 * numbers.length);
    const texts = Array.from(numbers.subarray(0, this.#rows), String);
    this.#bytes = Buffer.from(texts.join(''), 'latin1');
    let end = 0;
    texts.forEach((text, row) => {
      end += text.length;
      this.#offsets[row + 1] = end;
    });
  }

  #textOf(row: number): string {
    if (this.#numbers !== undefined) return String(this.#numbers[row]);
    return this.#bytes.toString('utf8', this.#offsets[row], this.#offsets[row + 1]);
  }
}

function grown(bytes: Buffer, atLeast: number): Buffer<ArrayBuffer> {
  const larger = Buffer.alloc(Math.max(2 * bytes.length, atLeast, 64 * 1024));
  bytes.copy(larger);
  return larger;
}
