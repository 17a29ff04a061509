import type { Clock } from '../ports/clock.ts';
import type { Output } from './context.ts';

const DRAW_MS = 200;
const WIDTH = 30;

/** A bar on a terminal, for whatever takes longer than a moment; silent elsewhere. */
export class Progress {
  readonly #stream: Output;
  readonly #cancel: () => void;

  constructor(stream: Output, total: number, clock: Clock, done: () => number) {
    this.#stream = stream;
    this.#cancel =
      stream.isTTY === true && total > 0
        ? clock.every(DRAW_MS, () => this.#draw(done(), total))
        : () => undefined;
  }

  end(): void {
    this.#cancel();
    if (this.#stream.isTTY === true) this.#stream.write('\r\u001b[2K');
  }

  #draw(done: number, total: number): void {
    const filled = Math.min(WIDTH, Math.floor((done / total) * WIDTH));
    this.#stream.write(`\r\u001b[2K${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${done} of ${total}`);
  }
}
