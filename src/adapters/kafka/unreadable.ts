import type { InboundRecord, Unreadable } from '../../ports/message-bus.ts';
import type { Logger } from '../../ports/telemetry.ts';

/** A batch of more offsets than this that is refused ends as one record, its last: else some bytes would make millions of dead letters. */
export const REFUSED_ONE_BY_ONE_MAX = 10_000;

const NO_HEADERS: InboundRecord['headers'] = Object.freeze({});

/** The records that stand for a refused batch, from `from` on. */
export function recordsOfRefused(
  refused: Unreadable,
  from: number,
  at: Pick<InboundRecord, 'topic' | 'partition' | 'timestampMs' | 'assignment'>,
): InboundRecord[] {
  return refusedOffsets(refused)
    .filter((offset) => offset >= from)
    .map((offset) => unreadableRecord(refused, { ...at, offset }));
}

export function refusedOffsets({ firstOffset, lastOffset }: Unreadable): readonly number[] {
  const count = lastOffset - firstOffset + 1;
  if (count > REFUSED_ONE_BY_ONE_MAX) return [lastOffset];
  return Array.from({ length: count }, (_, i) => firstOffset + i);
}

export function unreadableRecord(
  unreadable: Unreadable,
  at: Pick<InboundRecord, 'topic' | 'partition' | 'offset' | 'timestampMs' | 'assignment'>,
): InboundRecord {
  return { ...at, key: null, value: null, headers: NO_HEADERS, unreadable };
}

export interface UnreadableContext {
  logger: Logger;
  /** Told how many offsets of refused batches were passed. */
  onUnreadable(offsets: number): void;
}

/** Counts and logs refused batches, each once, and answers the records that can be read. */
export function noteUnreadable(
  records: InboundRecord[],
  { logger, onUnreadable }: UnreadableContext,
): InboundRecord[] {
  if (records.every(({ unreadable }) => unreadable === undefined)) return records;
  const batches = new Map<Unreadable, InboundRecord[]>();
  for (const record of records) {
    const { unreadable } = record;
    if (unreadable === undefined) continue;
    const own = batches.get(unreadable);
    if (own === undefined) batches.set(unreadable, [record]);
    else own.push(record);
  }
  for (const [unreadable, [first, ...more]] of batches) {
    if (first === undefined) continue;
    const isWhole = more.length === 0;
    onUnreadable(isWhole ? unreadable.lastOffset - unreadable.firstOffset + 1 : more.length + 1);
    logger.error(
      { topic: first.topic, partition: first.partition, ...unreadable },
      'a batch of records cannot be read and is passed',
    );
  }
  return records.filter(({ unreadable }) => unreadable === undefined);
}
