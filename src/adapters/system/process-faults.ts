import type { EventEmitter } from 'node:events';
import type { Logger } from '../../ports/telemetry.ts';

/**
 * What nobody catches (in a timer's callback, in a promise that nobody waits for) is a fault of this process. It ends as it does for any other that it
 * cannot mend: with a log line, and what it held goes to others. Without this Node ends it with text on standard error that no log collector can parse.
 *
 * @param tell writes a line where a person looks who has switched the log off
 * @param end ends the process, with an exit code other than 0
 */
export function endOnFault(
  source: EventEmitter,
  logger: Logger,
  tell: (line: string) => void,
  end: () => void,
): void {
  source.on('uncaughtException', (error: unknown, origin: string) => {
    try {
      logger.error({ error, origin }, 'a fault of this process; it ends, and what it held goes to others');
      tell(`ended by a fault of its own: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      // The log itself may be what failed.
      end();
    }
  });
}
