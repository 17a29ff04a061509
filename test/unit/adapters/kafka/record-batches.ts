import type { RecordsBatch } from '@platformatic/kafka';

export interface BatchFields {
  attributes?: number;
  producerId?: bigint;
  firstTimestamp?: bigint;
  maxTimestamp?: bigint;
  records?: RecordsBatch['records'];
}

/** A batch of so many records as @platformatic/kafka reads it. */
export function batchOf(firstOffset: number, count: number, fields: BatchFields = {}): RecordsBatch {
  const records = Array.from({ length: count }, (_, i) => ({
    length: 0,
    attributes: 0,
    timestampDelta: BigInt(i),
    offsetDelta: i,
    key: null,
    value: Buffer.from(`v${firstOffset + i}`),
    headers: [],
  }));
  return {
    firstOffset: BigInt(firstOffset),
    length: 0,
    partitionLeaderEpoch: 0,
    magic: 2,
    crc: 0,
    attributes: 0,
    lastOffsetDelta: count - 1,
    firstTimestamp: 1_000n,
    maxTimestamp: 5_000n,
    producerId: -1n,
    producerEpoch: 0,
    firstSequence: 0,
    records,
    ...fields,
  };
}
