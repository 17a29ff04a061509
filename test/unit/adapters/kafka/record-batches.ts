import type { BatchRecord, RecordBatch } from '../../../../src/adapters/kafka/record-batch.ts';

/** A batch of `count` records that say their offset, as it is read. */
export function batchOf(firstOffset: number, count: number, fields: Partial<RecordBatch> = {}): RecordBatch {
  const records = Array.from(
    { length: count },
    (_, i): BatchRecord => ({
      timestampDelta: BigInt(i),
      offsetDelta: i,
      key: null,
      value: Buffer.from(`v${firstOffset + i}`),
      headers: {},
    }),
  );
  return {
    firstOffset: BigInt(firstOffset),
    attributes: 0,
    lastOffsetDelta: count - 1,
    firstTimestamp: 1_000n,
    maxTimestamp: 5_000n,
    producerId: -1n,
    records,
    ...fields,
  };
}
