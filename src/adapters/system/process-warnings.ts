import type { EventEmitter } from 'node:events';
import type { Logger } from '../../ports/telemetry.ts';

/** What Node warns of becomes a log line like any other, in place of text on standard error that no log collector can parse. */
export function logProcessWarnings(source: EventEmitter, logger: Logger): void {
  // Node prints them in a listener of its own.
  source.removeAllListeners('warning');
  source.on('warning', (warning: Error) => {
    logger.warn({ warning: warning.name, error: warning }, 'Node warns of this process');
  });
}
