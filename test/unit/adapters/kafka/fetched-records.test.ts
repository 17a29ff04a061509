import type { RecordsBatch } from '@platformatic/kafka';
import { describe, expect, it } from 'vitest';
import { readFetched } from '../../../../src/adapters/kafka/platformatic/fetched-records.ts';
import { batchOf } from './record-batches.ts';

const AT = { topic: 't', partition: 3 };
const TRANSACTIONAL = 16;
const CONTROL = 32;
const LOG_APPEND_TIME = 8;

/** The end of a transaction: a key of version and type, 0 to abort and 1 to commit. */
function makeMarker(offset: number, producerId: bigint, type: 0 | 1): RecordsBatch {
  const [record] = batchOf(offset, 1).records;
  if (record === undefined) throw new Error('one record');
  return batchOf(offset, 1, {
    attributes: TRANSACTIONAL | CONTROL,
    producerId,
    records: [{ ...record, key: Buffer.from([0, 0, 0, type]) }],
  });
}

const values = (
  batches: readonly RecordsBatch[],
  aborted: { producerId: bigint; firstOffset: bigint }[] = [],
  from = 0,
) => {
  const { records, position } = readFetched(AT, from, batches, aborted, 9);
  return { values: records.map(({ value }) => value?.toString()), position };
};

describe('readFetched', () => {
  it('gives the records from the position on, with their place and assignment', () => {
    const { records, position } = readFetched(AT, 12, [batchOf(10, 4), batchOf(14, 1)], [], 9);
    expect(records.map(({ offset }) => offset)).toEqual([12, 13, 14]);
    expect(records[0]).toMatchObject({
      topic: 't',
      partition: 3,
      assignment: 9,
      timestampMs: 1_002,
      key: null,
    });
    expect(position).toBe(15);
  });

  it("takes the broker's time where the topic is stamped with it, which the records do not carry", () => {
    const { records } = readFetched(AT, 0, [batchOf(0, 2, { attributes: LOG_APPEND_TIME })], [], 9);
    expect(records.map(({ timestampMs }) => timestampMs)).toEqual([5_000, 5_000]);
  });

  it('goes past what compaction left of a batch', () => {
    const batch = batchOf(10, 5);
    batch.records.splice(1, 3);
    expect(values([batch])).toEqual({ values: ['v10', 'v14'], position: 15 });
    expect(values([batchOf(20, 5, { records: [] })], [], 20)).toEqual({ values: [], position: 25 });
  });

  it('leaves out what a transaction aborted, and nothing else of anybody', () => {
    const log = [
      batchOf(0, 2, { attributes: TRANSACTIONAL, producerId: 7n }),
      batchOf(2, 1, { attributes: TRANSACTIONAL, producerId: 8n }),
      batchOf(3, 1, { producerId: 7n }),
      makeMarker(4, 7n, 0),
      makeMarker(5, 8n, 1),
      batchOf(6, 1, { attributes: TRANSACTIONAL, producerId: 7n }),
      makeMarker(7, 7n, 1),
      batchOf(8, 1, { attributes: TRANSACTIONAL, producerId: 7n }),
      makeMarker(9, 7n, 0),
    ];
    const aborted = [
      { producerId: 7n, firstOffset: 8n },
      { producerId: 7n, firstOffset: 0n },
    ];
    expect(values(log, aborted)).toEqual({ values: ['v2', 'v3', 'v6'], position: 10 });
  });

  it('keeps the last of several headers of one name, whatever the name', () => {
    const batch = batchOf(0, 1);
    const [record] = batch.records;
    const header = (name: string, value: string): [Buffer, Buffer] => [Buffer.from(name), Buffer.from(value)];
    record?.headers.push(header('a', '1'), header('__proto__', 'p'), header('a', '2'), [
      Buffer.from('none'),
      null,
    ]);
    const headers = readFetched(AT, 0, [batch], [], 9).records[0]?.headers ?? {};
    expect(Object.entries(headers).map(([name, value]) => [name, value.toString()])).toEqual([
      ['a', '2'],
      ['__proto__', 'p'],
    ]);
  });
});
