import { IS_CONTROL, IS_TRANSACTIONAL, type RecordsBatch } from '@platformatic/kafka';
import type { Headers, InboundRecord, TopicPartition } from '../../../ports/message-bus.ts';

const LOG_APPEND_TIME = 8;
const ABORT = 0;
const NO_HEADERS: Headers = Object.freeze({});

export interface AbortedTransaction {
  producerId: bigint;
  firstOffset: bigint;
}

export interface FetchedRecords {
  records: InboundRecord[];
  /** The offset after the last batch, whatever was left out of it. */
  position: number;
}

/** The records of a fetch from `from` on, without markers and without what transactions aborted. */
export function readFetched(
  { topic, partition }: TopicPartition,
  from: number,
  batches: readonly RecordsBatch[],
  aborted: readonly AbortedTransaction[],
  assignment: number,
): FetchedRecords {
  const records: InboundRecord[] = [];
  const isAborted = abortedFilter(aborted);
  let position = from;
  for (const batch of batches) {
    const firstOffset = Number(batch.firstOffset);
    position = Math.max(position, firstOffset + batch.lastOffsetDelta + 1);
    if (isAborted(batch) || (batch.attributes & IS_CONTROL) !== 0) continue;
    const timestampOf = timestamps(batch);
    for (const record of batch.records) {
      const offset = firstOffset + record.offsetDelta;
      // A batch is sent whole, also where it begins before what was asked for.
      if (offset < from) continue;
      const { key, value } = record;
      records.push({
        topic,
        partition,
        offset,
        timestampMs: timestampOf(record.timestampDelta),
        key,
        value,
        headers: toHeaders(record.headers),
        assignment,
      });
    }
  }
  return { records, position };
}

/** With LogAppendTime the broker writes its time into the batch, and leaves the producer's in the records. */
function timestamps({ attributes, firstTimestamp, maxTimestamp }: RecordsBatch): (delta: bigint) => number {
  if ((attributes & LOG_APPEND_TIME) !== 0) {
    const appended = Number(maxTimestamp);
    return () => appended;
  }
  const first = Number(firstTimestamp);
  return (delta) => first + Number(delta);
}

/** Batches in the order of the log; a producer's are aborted from the offset that the broker names to its abort marker. */
function abortedFilter(aborted: readonly AbortedTransaction[]): (batch: RecordsBatch) => boolean {
  if (aborted.length === 0) return () => false;
  const waiting = [...aborted].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1));
  const aborting = new Set<bigint>();
  return ({ firstOffset, lastOffsetDelta, attributes, producerId, records }) => {
    const lastOffset = firstOffset + BigInt(lastOffsetDelta);
    for (let next = waiting[0]; next !== undefined && next.firstOffset <= lastOffset; next = waiting[0]) {
      aborting.add(next.producerId);
      waiting.shift();
    }
    if ((attributes & IS_CONTROL) !== 0) {
      if (records[0]?.key?.readInt16BE(2) === ABORT) aborting.delete(producerId);
      return true;
    }
    return (attributes & IS_TRANSACTIONAL) !== 0 && aborting.has(producerId);
  };
}

function toHeaders(pairs: readonly (readonly [Buffer | null, Buffer | null])[]): Headers {
  if (pairs.length === 0) return NO_HEADERS;
  const headers: Record<string, Buffer> = {};
  for (const [name, value] of pairs) {
    if (name !== null && value !== null) {
      // Where a header stands several times, the last one counts. `__proto__` is a name like any other.
      Object.defineProperty(headers, name.toString(), {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
  }
  return headers;
}
