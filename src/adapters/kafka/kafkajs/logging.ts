import kafkajs, { type LogEntry } from 'kafkajs';
import type { Logger } from '../../../ports/telemetry.ts';

/** Each of their failures comes back to the adapter as an error, which it reports once and not with every attempt. */
const CHATTY = new Set(['Connection', 'BrokerPool', 'Cluster', 'Producer']);

/** kafkajs's log lines in ours. Its errors are events that the adapter recovers from, so none is above a warning. */
export function logCreator(logger: Logger): () => (entry: LogEntry) => void {
  return () =>
    ({ namespace, level, log: { message, timestamp: _, logger: __, stack: ___, ...fields } }) => {
      const isSerious = level === kafkajs.logLevel.ERROR || level === kafkajs.logLevel.WARN;
      if (isSerious && !CHATTY.has(namespace)) logger.warn({ ...fields, namespace }, message);
      else logger.debug({ ...fields, namespace }, message);
    };
}
