import type { CliContext } from './context.ts';

const SAY_AFTER_MS = 2_000;
const REDRAW_MS = 1_000;
const CLEAR_LINE = '\r\u001b[2K';

/** Says on standard error what is waited for, once it takes longer than 2 s: counting the seconds on a terminal, one line elsewhere. */
export async function waitingFor<T>(context: CliContext, what: string, work: Promise<T>): Promise<T> {
  const { clock, stderr } = context;
  const startedMs = clock.monotonicMs();
  let cancelDrawing = (): void => undefined;
  const draw = (): void => {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1_000);
    stderr.write(`${CLEAR_LINE}${what} … ${seconds} s`);
  };
  const cancel = clock.after(SAY_AFTER_MS, () => {
    if (stderr.isTTY !== true) {
      stderr.write(`millrace: ${what} …\n`);
      return;
    }
    draw();
    const stop = clock.every(REDRAW_MS, draw);
    cancelDrawing = () => {
      stop();
      stderr.write(CLEAR_LINE);
    };
  });
  try {
    return await work;
  } finally {
    cancel();
    cancelDrawing();
  }
}
