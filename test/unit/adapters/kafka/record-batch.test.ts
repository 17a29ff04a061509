import { createRequire } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { gzipped, lz4, zstd } from '../../../../src/adapters/kafka/codecs.ts';
import {
  BATCH_UNPACKED_BYTES_MAX,
  HEADERS_MAX,
  type RecordBatch,
  readBatches,
  timestamps,
  unpackBudget,
} from '../../../../src/adapters/kafka/record-batch.ts';
import { batchBytes, recordBytes, varint, type WrittenBatch, type WrittenRecord } from './batch-bytes.ts';

const require = createRequire(import.meta.url);
const MB = 2 ** 20;
const GZIP = [1, gzipped] as const;
const LZ4 = [3, lz4] as const;
const ZSTD = [4, zstd] as const;

async function read(records: readonly WrittenRecord[] | Buffer, batch?: WrittenBatch): Promise<RecordBatch> {
  const [only, ...more] = await readBatches(await batchBytes(records, batch), unpackBudget());
  if (only === undefined || more.length > 0) throw new Error('not one batch');
  return only;
}

const headersOf = async (record: WrittenRecord) => {
  const headers = (await read([record])).records[0]?.headers ?? {};
  return Object.entries(headers).map(([name, value]) => [name, value.toString()]);
};

const bytes = fc.option(fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)));
const written = fc.array(
  fc.record({
    key: bytes,
    value: bytes,
    headers: fc.uniqueArray(
      fc.tuple(
        fc.string({ maxLength: 9 }).filter((name) => !(name in {})),
        fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
      ),
      { maxLength: 4, selector: ([name]) => name },
    ),
    timestampDelta: fc.integer({ min: -5_000_000_000, max: 5_000_000_000 }),
  }),
  { minLength: 1, maxLength: 30 },
);

interface KafkaJsRecord {
  offset: string;
  timestamp: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: Record<string, Buffer>;
}

describe('readBatches', () => {
  it.each([
    ['plain', undefined],
    ['gzip', GZIP],
    ['lz4', LZ4],
    ['zstd', ZSTD],
  ])("reads a %s batch as kafkajs's reader does", async (_, codec) => {
    const Decoder = require('kafkajs/src/protocol/decoder');
    const decode = require('kafkajs/src/protocol/recordBatch/v0/decoder') as (
      decoder: object,
    ) => Promise<{ records: KafkaJsRecord[] }>;
    const { registerCodecs } = await import('../../../../src/adapters/kafka/kafkajs/compression.ts');
    registerCodecs();
    await fc.assert(
      fc.asyncProperty(written, fc.nat(2 ** 40), fc.boolean(), async (records, firstOffset, isAppendTime) => {
        const batch = { firstOffset, attributes: isAppendTime ? 8 : 0 };
        const raw = await batchBytes(records, codec === undefined ? batch : { ...batch, codec });
        const expected = await decode(new Decoder(raw));
        const [own] = await readBatches(raw, unpackBudget());
        if (own === undefined) throw new Error('no batch');
        const timestampOf = timestamps(own);
        expect(
          own.records.map(({ offsetDelta, timestampDelta, key, value, headers }) => ({
            offset: String(Number(own.firstOffset) + offsetDelta),
            timestamp: String(timestampOf(timestampDelta)),
            key,
            value,
            headers,
          })),
        ).toEqual(
          expected.records.map(({ offset, timestamp, key, value, headers }) => ({
            offset,
            timestamp,
            key,
            value,
            headers,
          })),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('leaves a last batch out that is cut off', async () => {
    const first = await batchBytes([{ value: 'a' }]);
    const second = await batchBytes([{ value: 'b' }], { firstOffset: 1 });
    for (const kept of [5, 30, 61, second.length - 1]) {
      const batches = await readBatches(Buffer.concat([first, second.subarray(0, kept)]), unpackBudget());
      expect(batches.map(({ firstOffset }) => firstOffset)).toEqual([0n]);
    }
  });

  it('halts at bytes that are not those of the broker, at the old formats and at a compression to come', async () => {
    const damaged = await batchBytes([{ value: 'abc', headerCount: 7 }]);
    damaged[damaged.length - 2] = 1;
    await expect(readBatches(damaged, unpackBudget())).rejects.toThrow(/checksum/);
    const old = await batchBytes([{ value: 'abc' }], { magic: 1 });
    await expect(readBatches(old, unpackBudget())).rejects.toThrow(/format 1/);
    const later = await batchBytes([{ value: 'abc' }], { attributes: 6 });
    await expect(readBatches(later, unpackBudget())).rejects.toThrow(/compression 6/);
  });

  it('halts where a codec cannot be loaded, and reads the same bytes once it can', async () => {
    const load = vi.spyOn(lz4, 'load').mockRejectedValueOnce(new Error('no native code here'));
    onTestFinished(() => load.mockRestore());
    const packed = await batchBytes([{ value: 'sound' }], { codec: LZ4 });
    await expect(readBatches(packed, unpackBudget())).rejects.toThrow('no native code here');
    const [batch] = await readBatches(packed, unpackBudget());
    expect(batch?.records.map(({ value }) => value?.toString())).toEqual(['sound']);
  });
});

describe('the headers of a record', () => {
  it('are read in time that grows with their number, and the first thousand of them are kept', async () => {
    const headers = Array.from({ length: 100_000 }, (_, i) => [`h${i}`, ''] as const);
    const since = performance.now();
    const [record] = (await read([{ value: 'v', headers }, { value: 'w' }])).records;
    // With a copy of the object per header it takes hours.
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(Object.keys(record?.headers ?? {})).toHaveLength(HEADERS_MAX);
    expect(record?.value?.toString()).toBe('v');
  });

  it('keep the last value of a name that stands there several times, whatever the name', async () => {
    const headers = [
      ['a', '1'],
      ['__proto__', 'p'],
      ['a', '2'],
      ['constructor', 'c'],
    ] as const;
    expect(await headersOf({ headers })).toEqual([
      ['a', '2'],
      ['__proto__', 'p'],
      ['constructor', 'c'],
    ]);
    expect(
      await headersOf({ headers: Array.from({ length: 900 }, (_, i) => ['a', `${i}`] as const) }),
    ).toEqual([['a', '899']]);
  });

  it('leave out what has no value or no name, and take names of any length', async () => {
    const long = 'n'.repeat(500_000);
    const headers = [
      ['none', null],
      [null, 'x'],
      [long, 'y'],
    ] as const;
    expect(await headersOf({ headers })).toEqual([[long, 'y']]);
  });
});

describe('a batch is refused', () => {
  const sound = recordBytes({ key: 'k', value: 'v' });

  it.each<[string, Buffer | WrittenRecord[], WrittenBatch]>([
    ['a number of headers below none', [{ headerCount: -1 }], {}],
    ['more headers than there are', [{ headerCount: 1_000_000 }], {}],
    ['a length below none', Buffer.from(varint(-3)), {}],
    ['a record longer than its batch', Buffer.from([...varint(50), 0, 0]), {}],
    ['a record shorter than its fields', Buffer.from([...varint(1), 0, 0, 0, 1, 1, 0]), {}],
    ['a key of a length below none', Buffer.from([...varint(6), 0, 0, 0, ...varint(-2), 1, 0]), {}],
    ['a number without an end', Buffer.alloc(40, 0xff), {}],
    ['fewer records than announced', sound, { count: 2 }],
    ['a negative number of records', sound, { count: -5, codec: GZIP, lastOffsetDelta: 0 }],
    ['bytes that are not packed', sound, { attributes: 3 }],
  ])('for %s', async (_, records, batch) => {
    const refused = await read(records, { firstOffset: 40, lastOffsetDelta: 2, ...batch });
    expect(refused.records).toEqual([]);
    expect(refused.refused).toMatchObject({ code: 'MALFORMED', firstOffset: 40 });
    expect(refused.refused?.digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each([
    ['gzip', GZIP],
    ['lz4', LZ4],
    ['zstd', ZSTD],
  ])('where it unpacks to more than it may: %s', async (_, codec) => {
    const value = Buffer.alloc(BATCH_UNPACKED_BYTES_MAX);
    const { refused, records } = await read([{ value }, { value: 'b' }], { firstOffset: 7, codec });
    expect(refused).toMatchObject({ code: 'TOO_LARGE', firstOffset: 7, lastOffset: 8 });
    expect(refused?.reason).toMatch(/more than 33554432 bytes/);
    expect(records).toEqual([]);
  });

  it('where its records or headers are too many for memory, however few bytes they have', async () => {
    const headers = Array.from({ length: 1_000 }, () => ['', ''] as const);
    const one = recordBytes({ headers });
    const many = Buffer.concat(Array<Buffer>(400).fill(one));
    expect((await read(many, { count: 400, codec: ZSTD })).refused).toMatchObject({ code: 'TOO_LARGE' });
    const records = Buffer.concat(Array<Buffer>(150_000).fill(recordBytes({})));
    expect((await read(records, { count: 150_000, codec: ZSTD })).refused).toMatchObject({
      code: 'TOO_LARGE',
    });
    const fewer = await read(records, { count: 100_000, codec: ZSTD });
    expect(fewer.refused).toBeUndefined();
    expect(fewer.records).toHaveLength(100_000);
  });
});

describe('the batches of one answer', () => {
  it('are unpacked as far as the budget goes, and each gets through some time', async () => {
    const batch = (firstOffset: number, bytes: number) =>
      batchBytes([{ value: Buffer.alloc(bytes) }], { firstOffset, codec: ZSTD });
    const log = await Promise.all([
      batch(0, 25 * MB),
      batch(1, 25 * MB),
      batch(2, 25 * MB),
      batch(3, 40 * MB),
      batch(4, 31 * MB),
      batch(5, 1),
    ]);
    const answers: [bigint, boolean][][] = [];
    for (let next = 0; next < log.length; ) {
      const batches = await readBatches(Buffer.concat(log.slice(next)), unpackBudget());
      answers.push(batches.map(({ firstOffset, refused }) => [firstOffset, refused !== undefined]));
      next += batches.length;
      if (batches.length === 0) break;
    }
    expect(answers).toEqual([
      [
        [0n, false],
        [1n, false],
      ],
      [
        [2n, false],
        [3n, true],
      ],
      [
        [4n, false],
        [5n, false],
      ],
    ]);
  });

  it('do not take long where many are refused: the others wait for the next answer', async () => {
    const bomb = await batchBytes([{ value: Buffer.alloc(33 * MB) }], { codec: ZSTD });
    const batches = await readBatches(Buffer.concat(Array<Buffer>(300).fill(bomb)), unpackBudget());
    expect(batches.map(({ refused }) => refused?.code)).toEqual(['TOO_LARGE', 'TOO_LARGE']);
  });

  it('share the budget over partitions', async () => {
    const budget = unpackBudget();
    const raw = await batchBytes([{ value: Buffer.alloc(31 * MB) }], { codec: ZSTD });
    const counts = [];
    for (let partition = 0; partition < 4; partition++) counts.push((await readBatches(raw, budget)).length);
    expect(counts).toEqual([1, 1, 0, 0]);
  });
});
