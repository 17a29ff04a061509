import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { zstd } from '../../../../src/adapters/kafka/codecs.ts';
import { decodeFetch, type FetchedMessage } from '../../../../src/adapters/kafka/kafkajs/fetch.ts';
import { brokerClass } from '../../../../src/adapters/kafka/kafkajs/internals.ts';
import { adoptClient, applyPatches } from '../../../../src/adapters/kafka/kafkajs/patches.ts';
import { batchBytes } from './batch-bytes.ts';
import { fetchBytes, type WrittenPartition } from './fetch-bytes.ts';

const require = createRequire(import.meta.url);
const load = <T>(path: string) => require(`kafkajs/src/${path}`) as T;
const VERSIONS = [4, 5, 6, 7, 8, 9, 10, 11];
const TRANSACTIONAL = 16;
const CONTROL = 32;
const BOMB = 40 * 2 ** 20;

const answer = (version: number, ...partitions: WrittenPartition[]) =>
  fetchBytes(version, [{ name: 't', id: '00'.repeat(16), partitions }]);

async function messagesOf(records: Buffer): Promise<FetchedMessage[]> {
  const { responses } = await decodeFetch(answer(11, { partition: 0, records }), 11);
  return responses[0]?.partitions[0]?.messages ?? [];
}

/** As kafkajs's consumer sees a fetch. */
async function batchOf(records: Buffer, fetchedOffset: string) {
  type Batch = { messages: FetchedMessage[]; firstOffset(): string | null; lastOffset(): string };
  const Batch =
    load<new (topic: string, fetchedOffset: string, partition: object) => Batch>('consumer/batch');
  const { responses } = await decodeFetch(answer(11, { partition: 0, records }), 11);
  return new Batch('t', fetchedOffset, responses[0]?.partitions[0] ?? {});
}

describe.each(VERSIONS)('an answer of version %i', (version) => {
  it("is what kafkajs's own reader makes of it", async () => {
    const records = Buffer.concat([
      await batchBytes(
        [
          { key: 'k', value: 'a', headers: [['h', 'x']] },
          { key: null, value: null },
        ],
        { firstOffset: 4, attributes: TRANSACTIONAL, producerId: 7n },
      ),
      await batchBytes([{ key: Buffer.from([0, 0, 0, 0]), value: 'm' }], {
        firstOffset: 6,
        attributes: TRANSACTIONAL | CONTROL,
        producerId: 7n,
      }),
    ]);
    const bytes = answer(
      version,
      { partition: 1, records, aborted: [{ producerId: 7n, firstOffset: 4n }] },
      { partition: 2, records: null },
      { partition: 3, records: Buffer.alloc(0), errorCode: 3 },
    );
    const library = load<{ decode(bytes: Buffer): Promise<object> }>(
      `protocol/requests/fetch/v${version}/response`,
    );
    expect(await decodeFetch(bytes, version)).toMatchObject(withoutUnused(await library.decode(bytes)));
  });
});

/** What kafkajs decodes and then never looks at. */
function withoutUnused(decoded: object): object {
  const unused = ['magicByte', 'attributes', 'lastStartOffset'];
  const used = ['producerId', 'inTransaction'];
  const copy = JSON.parse(
    JSON.stringify(decoded, (key, value: unknown) => {
      if (key === 'batchContext')
        return Object.fromEntries(Object.entries(value as object).filter(([name]) => used.includes(name)));
      return unused.includes(key) ? undefined : value;
    }),
    (_, value: unknown) => (isBufferJson(value) ? Buffer.from(value.data) : value),
  ) as object;
  return copy;
}

function isBufferJson(value: unknown): value is { data: number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer';
}

describe('a fetch', () => {
  it('has a message for each record of a batch that unpacks to much, and goes on behind them', async () => {
    const bomb = await batchBytes([{ value: Buffer.alloc(BOMB) }, { value: 'b' }], {
      firstOffset: 3,
      codec: [4, zstd],
    });
    const after = await batchBytes([{ value: 'c' }], { firstOffset: 5 });
    const batch = await batchOf(Buffer.concat([bomb, after]), '4');
    expect(
      batch.messages.map(({ offset, value, unreadable }) => [offset, value?.toString(), unreadable?.code]),
    ).toEqual([
      ['4', undefined, 'TOO_LARGE'],
      ['5', 'c', undefined],
    ]);
    expect(batch.lastOffset()).toBe('5');
  });

  it('leaves out a partition that the budget has no room for, so that it is asked for again', async () => {
    const records = await batchBytes([{ value: Buffer.alloc(31 * 2 ** 20) }], { codec: [4, zstd] });
    const partitions = [0, 1, 2].map((partition) => ({ partition, records }));
    const { responses } = await decodeFetch(answer(11, ...partitions, { partition: 3, records: null }), 11);
    expect(responses[0]?.partitions.map(({ partition }) => partition)).toEqual([0, 1, 3]);
  });

  it('goes behind the end of a batch that compaction took', async () => {
    const kept = await batchBytes([{ value: 'a' }], { firstOffset: 3, lastOffsetDelta: 4, count: 1 });
    const batch = await batchOf(kept, '3');
    expect(batch.messages.map(({ offset }) => offset)).toEqual(['3']);
    expect(batch.lastOffset()).toBe('7');
    const empty = await batchOf(
      await batchBytes(Buffer.alloc(0), { firstOffset: 3, lastOffsetDelta: 4, count: 0 }),
      '3',
    );
    expect(empty.messages).toEqual([]);
    expect([empty.firstOffset(), empty.lastOffset()]).toEqual(['7', '7']);
  });

  it('keeps the time at which the broker appended', async () => {
    const [message] = await messagesOf(await batchBytes([{ value: 'a' }], { attributes: 8 }));
    expect(message?.timestamp).toBe('5000');
  });
});

describe('the patch of fetches', () => {
  const CODE = 1;

  async function readerOf(rootLogger: object): Promise<object> {
    applyPatches();
    const library = load<{ protocol(of: { version: number }): (options: object) => object }>(
      'protocol/requests/fetch',
    );
    let sent: { response: { decode: object } } | undefined;
    const broker = Object.assign(Object.create(brokerClass().prototype as object), {
      rootLogger,
      lookupRequest: (code: number) => {
        expect(code).toBe(CODE);
        return library.protocol({ version: 11 });
      },
      logger: { debug: () => undefined },
      connectionPool: {
        send: async (request: typeof sent) => {
          sent = request;
        },
      },
    }) as { fetch(options: object): Promise<unknown> };
    await broker.fetch({ topics: [], maxWaitTime: 1 });
    if (sent === undefined) throw new Error('nothing was sent');
    return sent.response.decode;
  }

  it('reads the answers to our clients, and leaves those to others to kafkajs', async () => {
    const own = {};
    adoptClient(own);
    const library = load<{ decode: object }>('protocol/requests/fetch/v11/response').decode;
    expect(await readerOf({})).toBe(library);
    const reader = (await readerOf(own)) as (bytes: Buffer) => Promise<object>;
    expect(reader).not.toBe(library);
    const bytes = answer(11, { partition: 0, records: null });
    expect(await reader(bytes)).toEqual(await decodeFetch(bytes, 11));
  });
});

describe('kafkajs as it is installed', () => {
  const source = (path: string) => readFileSync(require.resolve(`kafkajs/src/protocol/${path}`), 'utf8');

  it('still copies all headers for each header, and unpacks without a bound: else its reader would do', () => {
    expect(source('recordBatch/record/v0/decoder.js')).toMatch(/reduce\([\s\S]*\.\.\.obj/);
    expect(source('message/compression/gzip.js')).not.toMatch(/maxOutputLength/);
  });
});
