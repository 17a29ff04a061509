import type { Clock } from '../ports/clock.ts';
import type { Output } from './context.ts';

const DRAW_MS = 200;
const WIDTH = 30;
const FIRST_LINE_MS = 2_000;
const LINE_EVERY_MS = 10_000;

export interface Progressed {
  /** How many there are in all; without it no bar can be drawn. */
  total?: number;
  done(): number;
  /** The same in words. */
  line(): string;
}

/** Shows how far a long piece of work is, on standard error: a bar on a terminal; elsewhere a line after 2 s, and one every 10 s from then on. */
export class Progress {
  readonly #stream: Output;
  readonly #cancel: () => void;

  constructor(stream: Output, clock: Clock, work: Progressed) {
    this.#stream = stream;
    this.#cancel =
      stream.isTTY === true
        ? clock.every(DRAW_MS, () => stream.write(`\r\u001b[2K${bar(work)}`))
        : sayEverySoOften(clock, () => stream.write(`millrace: ${work.line()}\n`));
  }

  end(): void {
    this.#cancel();
    if (this.#stream.isTTY === true) this.#stream.write('\r\u001b[2K');
  }
}

function bar({ total, done, line }: Progressed): string {
  if (total === undefined) return line();
  const filled = Math.min(WIDTH, Math.floor((done() / total) * WIDTH));
  return `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${done()} of ${total}`;
}

/** For what no terminal redraws: nothing in the first 2 s, then a line every 10 s. Answers how to end it. */
export function sayEverySoOften(clock: Clock, say: (isFirst: boolean) => void): () => void {
  let cancelRest = (): void => undefined;
  const cancelFirst = clock.after(FIRST_LINE_MS, () => {
    say(true);
    cancelRest = clock.every(LINE_EVERY_MS, () => say(false));
  });
  return () => {
    cancelFirst();
    cancelRest();
  };
}
