import type { Output } from './context.ts';
/** Redraws a block of lines in place on a terminal; on anything else prints nothing. */
export class Screen {
  readonly #stream: Output;
  #lines = 0;

  constructor(stream: Output) {
    this.#stream = stream;
  }

  get live(): boolean {
    return this.#stream.isTTY === true;
  }

  draw(lines: readonly string[]): void {
    if (!this.live) return;
    const up = this.#lines > 0 ? `\u001b[${this.#lines}A` : '';
    this.#stream.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join('')}\u001b[J`);
    this.#lines = lines.length;
  }
}

/** Colours where they help: a terminal, and nobody said NO_COLOR. */
export function wantsColor(
  stream: Output,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '';
}
