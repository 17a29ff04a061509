import { stripVTControlCharacters } from 'node:util';
import type { Output } from './context.ts';

/** A terminal that does not say how wide it is. */
const DEFAULT_COLUMNS = 80;

/** Redraws a block of lines in place on a terminal, cut to its width; on anything else prints nothing. */
export class Screen {
  readonly #stream: Output;
  #lines = 0;
  #columns: number | undefined;

  constructor(stream: Output) {
    this.#stream = stream;
  }

  get live(): boolean {
    return this.#stream.isTTY === true;
  }

  draw(lines: readonly string[]): void {
    if (!this.live) return;
    const columns = terminalWidth(this.#stream) ?? DEFAULT_COLUMNS;
    // Lines that were wider than the terminal is now have wrapped: how many rows they take is no longer known.
    const resized = this.#columns !== undefined && this.#columns !== columns;
    this.#columns = columns;
    const up = resized ? '\u001b[2J\u001b[H' : this.#lines > 0 ? `\u001b[${this.#lines}A` : '';
    this.#stream.write(`${up}${lines.map((line) => `\u001b[2K${cut(line, columns)}\n`).join('')}\u001b[J`);
    this.#lines = lines.length;
  }
}

/** In characters; undefined where the stream is no terminal, and lines may be of any length. */
export function terminalWidth(stream: Output): number | undefined {
  return stream.isTTY === true ? (stream.columns ?? DEFAULT_COLUMNS) : undefined;
}

/** A line that would wrap would be counted as one row and leave the rest behind at the next drawing; what is cut loses its colours. */
export function cut(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length <= columns ? line : `${plain.slice(0, columns - 1)}…`;
}

/** Colours where they help: a terminal, and nobody said NO_COLOR. */
export function wantsColor(
  stream: Output,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '';
}
