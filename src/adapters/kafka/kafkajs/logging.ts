import kafkajs, { type LogEntry } from 'kafkajs';
import type { Logger } from '../../../ports/telemetry.ts';

/** kafkajs's log lines in ours. Its errors are events that the adapter recovers from and reports itself, so none is above a warning. */
export function logCreator(logger: Logger): () => (entry: LogEntry) => void {
  return () =>
    ({ namespace, level, log: { message, timestamp: _, logger: __, stack: ___, ...fields } }) => {
      if (level === kafkajs.logLevel.ERROR || level === kafkajs.logLevel.WARN) logger.warn({ ...fields, namespace }, message);
      else logger.debug({ ...fields, namespace }, message);
    };
}
