import type { InboundRecord, TopicPartition } from '../../../ports/message-bus.ts';
import type { AbortedTransaction } from '../fetch-response.ts';
import { IS_CONTROL, IS_TRANSACTIONAL, type RecordBatch, timestamps } from '../record-batch.ts';
import { recordsOfRefused } from '../unreadable.ts';

const ABORT = 0;

export interface FetchedRecords {
  records: InboundRecord[];
  /** The offset after the last batch, whatever was left out of it. */
  position: number;
}

/** The records of a fetch from `from` on, without markers and without what transactions aborted. */
export function readFetched(
  { topic, partition }: TopicPartition,
  from: number,
  batches: readonly RecordBatch[],
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
    if (batch.refused !== undefined) {
      const at = { topic, partition, timestampMs: timestampOf(0), assignment };
      for (const record of recordsOfRefused(batch.refused, from, at)) records.push(record);
      continue;
    }
    for (const record of batch.records) {
      const offset = firstOffset + record.offsetDelta;
      // A batch is sent whole, also where it begins before what was asked for.
      if (offset < from) continue;
      const { key, value, headers } = record;
      records.push({
        topic,
        partition,
        offset,
        timestampMs: timestampOf(record.timestampDelta),
        key,
        value,
        headers,
        assignment,
      });
    }
  }
  return { records, position };
}

/** Batches in the order of the log; a producer's are aborted from the offset that the broker names to its abort marker. */
function abortedFilter(aborted: readonly AbortedTransaction[]): (batch: RecordBatch) => boolean {
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
