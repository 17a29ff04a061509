import { type DestinationStream, pino } from 'pino';

/** Lines that a disk did not take are kept up to so many bytes, until it takes some again. */
const KEPT_BYTES_MAX = 2 ** 20;

export interface LogDestination extends DestinationStream {
  /**
   * Whether all lines until now are written, within the time, or cannot be: true where the process may end as any other. False where somebody holds the
   * pipe and reads nothing: an exit would wait for that for ever.
   */
  written(withinMs: number): Promise<boolean>;
}

/**
 * Standard output, for the log. Where it leads to a file whose disk is full the process goes on: lines are kept, up to a bound, and written when there
 * is room again. Left to itself the library makes that an uncaught exception, and then waits in the process's exit, for ever, for what cannot be written.
 *
 * @param tell writes a line elsewhere: that the log cannot be written, once for each time that it begins
 */
export function logDestination(tell: (line: string) => void): LogDestination {
  const stream = pino.destination({ dest: 1, sync: false, maxLength: KEPT_BYTES_MAX });
  const flushSync = stream.flushSync.bind(stream);
  const giveUp = (): void => undefined;
  let isBroken = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A pipe that nobody reads any more: the library takes no more lines then.
    if (isBroken || error.code === 'EPIPE') return;
    isBroken = true;
    stream.flushSync = giveUp;
    tell(`the log cannot be written: ${error.message}; this process goes on`);
  });
  stream.on('write', () => {
    if (!isBroken) return;
    isBroken = false;
    stream.flushSync = flushSync;
  });
  const write = stream.write.bind(stream);
  let isOutstanding = false;
  stream.on('drain', () => {
    isOutstanding = false;
  });
  return Object.assign(stream, {
    write(line: string): boolean {
      isOutstanding = true;
      return write(line);
    },
    written(withinMs: number): Promise<boolean> {
      if (!isOutstanding || isBroken) return Promise.resolve(true);
      return new Promise((resolve) => {
        const late = setTimeout(() => resolve(isBroken), withinMs);
        stream.once('drain', () => {
          clearTimeout(late);
          resolve(true);
        });
      });
    },
  });
}
