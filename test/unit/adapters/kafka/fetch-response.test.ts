import * as platformatic from '@platformatic/kafka';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readFetchResponse } from '../../../../src/adapters/kafka/fetch-response.ts';
import { batchBytes } from './batch-bytes.ts';
import { fetchBytes, type WrittenTopic } from './fetch-bytes.ts';

const VERSIONS = Array.from({ length: 14 }, (_, i) => i + 4);

/** The library's reader of a version. */
function libraryReader(version: number) {
  const modules = platformatic as unknown as Record<
    string,
    | {
        parseResponse(
          correlationId: number,
          key: number,
          version: number,
          reader: platformatic.Reader,
        ): platformatic.fetchV17.FetchResponse;
      }
    | undefined
  >;
  const module = modules[`fetchV${version}`];
  if (module === undefined) throw new Error(`no version ${version}`);
  return (bytes: Buffer) => module.parseResponse(0, 1, version, platformatic.Reader.from(bytes));
}

const topicsOf = (records: Buffer | null): WrittenTopic[] => [
  {
    name: 'first',
    id: '00112233445566778899aabbccddeeff',
    partitions: [
      { partition: 3, records, highWatermark: 2n ** 40n, aborted: [{ producerId: 5n, firstOffset: 6n }] },
      { partition: 1, records: null },
    ],
  },
  { name: 'second', id: 'ff'.repeat(16), partitions: [{ partition: 0, records: Buffer.alloc(0) }] },
];

describe.each(VERSIONS)('the answer to a fetch of version %i', (version) => {
  it("is read as @platformatic/kafka's reader does", async () => {
    const records = await batchBytes([{ value: 'a' }, { value: 'b' }], { firstOffset: 4 });
    const bytes = fetchBytes(version, topicsOf(records));
    const own = readFetchResponse(bytes, version);
    const theirs = libraryReader(version)(bytes);
    expect({ ...own, topics: undefined }).toEqual({
      throttleTimeMs: theirs.throttleTimeMs,
      errorCode: theirs.errorCode,
      sessionId: theirs.sessionId,
    });
    expect(
      own.topics.map(({ topic, partitions }) => [
        topic,
        partitions.map((each) => [each.partition, each.highWatermark, each.abortedTransactions]),
      ]),
    ).toEqual(
      theirs.responses.map(({ topicId, partitions }) => [
        topicId,
        partitions.map((each) => [
          each.partitionIndex,
          each.highWatermark,
          (each.abortedTransactions ?? []).map(({ producerId, firstOffset }) => ({
            producerId,
            firstOffset,
          })),
        ]),
      ]),
    );
    expect(own.topics[0]?.partitions[0]?.records.equals(records)).toBe(true);
    expect(own.topics[0]?.partitions[1]?.records).toHaveLength(0);
  });

  it('tells errors and the replica to read from', () => {
    const partitions = [{ partition: 2, errorCode: 6, preferredReadReplica: 4 }];
    const bytes = fetchBytes(version, [{ name: 't', id: '00'.repeat(16), partitions }], { errorCode: 9 });
    const response = readFetchResponse(bytes, version);
    expect(response.errorCode).toBe(version >= 7 ? 9 : 0);
    expect(response.topics[0]?.partitions[0]).toMatchObject({
      partition: 2,
      errorCode: 6,
      preferredReadReplica: version >= 11 ? 4 : -1,
    });
  });

  it('passes over fields that are not known, and reads nothing outside', () => {
    const bytes = fetchBytes(version, topicsOf(Buffer.alloc(70, 1)), { tagged: true });
    expect(readFetchResponse(bytes, version).topics[1]?.topic).toMatch(
      version >= 13 ? /^f{8}-f{4}/ : /second/,
    );
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), (end) => {
        try {
          readFetchResponse(bytes.subarray(0, end), version);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});

it.each([3, 18])('version %i is not known', (version) => {
  expect(() => readFetchResponse(Buffer.alloc(100), version)).toThrow(/4 to 17/);
});
