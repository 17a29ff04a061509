import type { UnreadableCode } from '../contracts/codec.ts';
import type { ScoredResult } from '../contracts/records.ts';
import type { InboundRecord } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';

export interface UnreadableResult {
  code: UnreadableCode;
  message: string;
  /** Where the record lies on scored-results. */
  partition: number;
  offset: number;
  /** Its key, which is the requestId of what it answers. */
  requestId: string | undefined;
}

export type ReadResult =
  | { status: 'read'; result: ScoredResult }
  | { status: 'unreadable'; unreadable: UnreadableResult }
  /** Nobody wants it any more. */
  | { status: 'unwanted' };

const RETRY_MS = 500;

/**
 * Decodes a record of scored-results. A schema that is new is looked up; while the registry is away the record waits, for as long as
 * `isWanted` says so. A record that cannot be read is logged and counted. Never rejects.
 */
export async function readResult(
  connection: Connection,
  record: InboundRecord,
  isWanted: () => boolean,
): Promise<ReadResult> {
  const { codecs, clock, telemetry } = connection;
  const codec = codecs.for('ScoredResult');
  for (;;) {
    if (!isWanted()) return { status: 'unwanted' };
    const decoded = codec.decode(record.value);
    if (decoded.status === 'ok') return { status: 'read', result: decoded.value };
    if (decoded.status === 'unreadable')
      return { status: 'unreadable', unreadable: report(connection, record, decoded.code, decoded.message) };
    try {
      await codecs.learn(decoded.schemaId);
    } catch (error) {
      const { schemaId } = decoded;
      telemetry.logger.warn(
        { schemaId, error },
        'a result waits for its schema: the look-up failed, and is tried again',
      );
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
    }
  }
}

function report(
  { telemetry }: Connection,
  { partition, offset, key }: InboundRecord,
  code: UnreadableCode,
  message: string,
): UnreadableResult {
  const unreadable = { code, message, partition, offset, requestId: key?.toString('utf8') };
  telemetry.logger.error({ ...unreadable }, 'a result cannot be read');
  telemetry
    .counter({
      name: 'millrace_client_unreadable_results_total',
      help: 'Records of scored-results that this client could not read.',
      labels: ['code'],
    })
    .add(1, { code });
  return unreadable;
}
