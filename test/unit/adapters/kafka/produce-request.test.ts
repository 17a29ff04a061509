import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  encodeProduce,
  type ProduceOptions,
  produceRequest,
} from '../../../../src/adapters/kafka/kafkajs/produce-request.ts';

/** kafkajs's own request, which this file leaves unpatched. */
const require = createRequire(import.meta.url);
const original = require('kafkajs/src/protocol/requests/produce/v3/request') as (options: ProduceOptions) => {
  encode(): Promise<{ buffer: Buffer }>;
};
const Long = require('kafkajs/src/utils/long') as { fromValue(value: string): { toString(): string } };

const compress = (_: number, { buffer }: { buffer: Buffer }) => promisify(gzip)(buffer);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_760_000_000_123 });
});
afterEach(() => {
  vi.useRealTimers();
});

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
);
const large = fc.integer({ min: 100, max: 40_000 }).map((length) => Buffer.alloc(length, length));
const timestamp = fc.option(fc.integer({ min: 1_000_000_000_000, max: 1_999_999_999_999 }).map(String), {
  nil: undefined,
});
const headerValue = fc.oneof(bytes, fc.array(bytes, { minLength: 1, maxLength: 3 }));
const message = fc.record(
  {
    key: fc.option(bytes),
    value: fc.option(fc.oneof({ weight: 5, arbitrary: bytes }, large)),
    headers: fc.dictionary(fc.string({ maxLength: 10 }), headerValue, { maxKeys: 4 }),
    timestamp,
  },
  { requiredKeys: ['key', 'value'] },
);
const partition = fc.record({
  partition: fc.nat(100),
  firstSequence: fc.nat(1_000_000),
  messages: fc.array(message, { minLength: 1, maxLength: 150 }),
});
const request = fc.record(
  {
    acks: fc.constantFrom(-1, 0, 1),
    timeout: fc.nat(60_000),
    transactionalId: fc.string({ minLength: 1, maxLength: 10 }),
    producerId: fc.bigInt({ min: -1n, max: 2n ** 62n }).map((id) => Long.fromValue(String(id))),
    producerEpoch: fc.nat(100),
    topicData: fc.array(
      fc.record({
        topic: fc.string({ minLength: 1, maxLength: 20 }),
        partitions: fc.array(partition, { maxLength: 3 }),
      }),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: ['acks', 'timeout', 'topicData'] },
);

describe('produceRequest', () => {
  it('has the bytes that kafkajs writes, for all that kafkajs takes', async () => {
    await fc.assert(
      fc.asyncProperty(request, async (options) => {
        const ours = await encodeProduce(options as ProduceOptions, compress);
        const theirs = await original(options as ProduceOptions).encode();
        expect(ours.buffer.equals(theirs.buffer)).toBe(true);
        expect(ours.buf).toBe(ours.buffer);
      }),
      { numRuns: 300 },
    );
  });

  it('has them for long batches, whose numbers take several bytes', async () => {
    const messages = Array.from({ length: 20_000 }, (_, i) => ({ key: null, value: Buffer.from(String(i)) }));
    const options = {
      acks: -1,
      timeout: 1,
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }],
    };
    const theirs = await original(options).encode();
    expect((await encodeProduce(options, compress)).buffer.equals(theirs.buffer)).toBe(true);
  });

  it('compresses the records of a batch, and nothing else', async () => {
    const messages = Array.from({ length: 50 }, (_, i) => ({
      key: Buffer.from(`k${i}`),
      value: Buffer.alloc(100, i),
    }));
    const topicData = [{ topic: 't', partitions: [{ partition: 3, messages }] }];
    const plain = (await encodeProduce({ acks: -1, timeout: 1, topicData }, compress)).buffer;
    const packed = (await encodeProduce({ acks: -1, timeout: 1, topicData, compression: 1 }, compress))
      .buffer;
    const records = (whole: Buffer) => whole.subarray(2 + 2 + 4 + 4 + 2 + 1 + 4 + 4 + 4 + 61);
    expect((await promisify(gunzip)(records(packed))).equals(records(plain))).toBe(true);
    const theirs = (await original({ acks: -1, timeout: 1, topicData, compression: 1 }).encode()).buffer;
    expect(packed.equals(theirs)).toBe(true);
  });

  it('expects no answer where no acknowledgement is asked for', () => {
    const make = (acks: number) => produceRequest({ acks, timeout: 1, topicData: [] }, 7, compress);
    expect(make(0).expectResponse()).toBe(false);
    expect(make(-1).expectResponse()).toBe(true);
    expect(make(-1)).toMatchObject({ apiKey: 0, apiVersion: 7, apiName: 'Produce' });
  });
});
