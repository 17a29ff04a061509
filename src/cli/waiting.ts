import type { CliContext } from './context.ts';
import { sayEverySoOften } from './progress.ts';

const SAY_AFTER_MS = 2_000;
const REDRAW_MS = 1_000;
const CLEAR_LINE = '\r\u001b[2K';

/** What of the context is needed to say what is waited for. */
type Listener = Pick<CliContext, 'clock' | 'stderr'>;

/**
 * Says on standard error what is waited for, once it takes longer than 2 s: counting the seconds on a terminal, a line every 10 s elsewhere.
 * `what` may be a function where it changes.
 */
export async function waitingFor<T>(
  { clock, stderr }: Listener,
  what: string | (() => string),
  work: Promise<T>,
): Promise<T> {
  const startedMs = clock.monotonicMs();
  const said = (): string => `${typeof what === 'string' ? what : what()} …`;
  const saidWithTime = (): string => `${said()} ${Math.round((clock.monotonicMs() - startedMs) / 1_000)} s`;
  const end =
    stderr.isTTY === true
      ? redraw({ clock, stderr }, saidWithTime)
      : sayEverySoOften(clock, (isFirst) => stderr.write(`millrace: ${isFirst ? said() : saidWithTime()}\n`));
  try {
    return await work;
  } finally {
    end();
  }
}

function redraw({ clock, stderr }: Listener, said: () => string): () => void {
  const draw = (): void => void stderr.write(`${CLEAR_LINE}${said()}`);
  let endDrawing = (): void => undefined;
  const cancel = clock.after(SAY_AFTER_MS, () => {
    draw();
    const stop = clock.every(REDRAW_MS, draw);
    endDrawing = () => {
      stop();
      stderr.write(CLEAR_LINE);
    };
  });
  return () => {
    cancel();
    endDrawing();
  };
}
