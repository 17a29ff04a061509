import { deadLetterRecord } from '../contracts/dead-letter.ts';
import type { Identity } from '../contracts/records.ts';
import type { TopicNames } from '../contracts/topics.ts';
import type { InboundRecord } from '../ports/message-bus.ts';
import { endedResult, type ResultWriter } from './results.ts';
import type { DeadLetters } from './run-stage.ts';

export interface DeadLettersOptions<T> {
  stage: string;
  topics: TopicNames;
  results: ResultWriter;
  payload: 'full' | 'hash';
  /** Partitions of a dead-letter topic. */
  partitionsOf(topic: string): number;
  /** Who the request is, where the record could be decoded. */
  requestOf(value: T): { requestId: string; identity?: Identity; resultPartition: number | null };
}

/**
 * A record that cannot be read or worked on ends twice: its original bytes on `<topic>.dlq`, and a DEAD_LETTERED result on
 * scored-results so that the ledger closes. The request is named by the decoded record, else by a key that is text, else by
 * topic/partition/offset.
 */
export function createDeadLetters<T>(options: DeadLettersOptions<T>): DeadLetters<T> {
  return (record, value, code, message) => {
    const request = value === undefined ? undefined : options.requestOf(value);
    const topic = options.topics.deadLetter(record.topic);
    const result = endedResult(
      {
        requestId:
          request?.requestId ?? textKey(record) ?? `${record.topic}/${record.partition}/${record.offset}`,
        identity: request?.identity ?? {
          topic: record.topic,
          partition: record.partition,
          offset: record.offset,
        },
      },
      { outcome: 'DEAD_LETTERED', code, message },
    );
    return [
      deadLetterRecord({
        record,
        topic,
        partition: record.partition % options.partitionsOf(topic),
        stage: options.stage,
        code,
        message,
        payload: options.payload,
      }),
      options.results.record(result, request?.resultPartition ?? null),
    ];
  };
}

const KEY_BYTES_MAX = 128;

/** The key where it is printable UTF-8 of a request id's length. */
function textKey(record: InboundRecord): string | undefined {
  if (record.key === null || record.key.length === 0 || record.key.length > KEY_BYTES_MAX) return undefined;
  const text = record.key.toString('utf8');
  return Buffer.byteLength(text) === record.key.length && !/[\p{Cc}\ufffd]/u.test(text) ? text : undefined;
}
