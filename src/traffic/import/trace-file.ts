import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { MillraceError } from '../../core/errors.ts';

export interface Line {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
}

const CHUNK_BYTES = 65_536;
const LINE_LENGTH_MAX = 100_000;

/** A file of lines that somebody else made: it is read piece by piece, and no line of it can fill the memory. */
export class TraceFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * From the beginning each time. Lines that are empty are left out, and counted.
   * @throws MillraceError INVALID_CONFIG for a line without an end; the system's error where the file cannot be read
   */
  *lines(): Generator<Line, void, void> {
    // Before it is opened: a pipe that nobody writes to would hold that up for ever.
    if (!statSync(this.path).isFile())
      throw new MillraceError('INVALID_CONFIG', 'the trace is no file that can be read twice', {
        value: this.path,
        allowed: 'a file; no pipe, no device, no folder',
      });
    const handle = openSync(this.path, 'r');
    try {
      yield* this.#linesOf(handle);
    } finally {
      closeSync(handle);
    }
  }

  /** @param column counts from 1, or names a column */
  bad(line: number, column: string | number, value: string, allowed: string): MillraceError {
    const where = typeof column === 'number' ? `column ${column}` : column;
    return new MillraceError('INVALID_CONFIG', `${this.path} is not valid at line ${line}, ${where}`, {
      value,
      allowed,
    });
  }

  *#linesOf(handle: number): Generator<Line, void, void> {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const decoder = new StringDecoder('utf8');
    let rest = '';
    let number = 0;
    for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk)) {
      const parts = (rest + decoder.write(chunk.subarray(0, read))).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        number += 1;
        yield* this.#line(number, part);
      }
      if (rest.length > LINE_LENGTH_MAX) throw this.#endless(number + 1);
    }
    yield* this.#line(number + 1, rest + decoder.end());
  }

  *#line(number: number, text: string): Generator<Line, void, void> {
    if (text.length > LINE_LENGTH_MAX) throw this.#endless(number);
    const trimmed = text.trim();
    if (trimmed !== '') yield { number, text: trimmed };
  }

  #endless(number: number): MillraceError {
    return this.bad(
      number,
      'the line',
      `more than ${LINE_LENGTH_MAX} characters`,
      `lines of at most ${LINE_LENGTH_MAX} characters`,
    );
  }
}
