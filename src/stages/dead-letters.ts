import { deadLetterRecord } from '../contracts/dead-letter.ts';
import type { Identity } from '../contracts/records.ts';
import type { TopicNames } from '../contracts/topics.ts';
import type { InboundRecord } from '../ports/message-bus.ts';
import { requestName } from './request-name.ts';
import { endedResult, type ResultWriter, reasonText } from './results.ts';
import type { DeadLetters } from './run-stage.ts';

export interface DeadLettersOptions<T> {
  stage: string;
  topics: TopicNames;
  results: ResultWriter;
  payload: 'full' | 'hash';
  /** Partitions of a dead-letter topic. */
  partitionsOf(topic: string): number;
  /** Who the request is, where the record could be decoded. */
  requestOf(value: T): Request;
  /** Who it is where it could not: what stages write themselves says so beside its value. Without, or where it does not, the record is the request. */
  requestIn?(record: InboundRecord): Request | undefined;
}

interface Request {
  requestId: string;
  identity?: Identity;
  resultPartition: number | null;
}

/**
 * A record that cannot be read or worked on ends twice: its original bytes on `<topic>.dlq`, and a DEAD_LETTERED result on
 * scored-results so that the ledger closes.
 */
export function createDeadLetters<T>(options: DeadLettersOptions<T>): DeadLetters<T> {
  return (record, value, code, message, payload) => {
    const request = value === undefined ? options.requestIn?.(record) : options.requestOf(value);
    const topic = options.topics.deadLetter(record.topic);
    const result = endedResult(
      {
        requestId: requestName(request?.requestId, record),
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
        message: reasonText(message),
        payload: payload ?? options.payload,
      }),
      options.results.record(result, request?.resultPartition ?? null, payload === 'hash'),
    ];
  };
}
