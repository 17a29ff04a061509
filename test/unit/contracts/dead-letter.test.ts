import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DeadLetterInput,
  deadLetterRecord,
  parseDeadLetter,
  replayedRecord,
} from '../../../src/contracts/dead-letter.ts';
import type { Headers, InboundRecord, OutboundRecord } from '../../../src/ports/message-bus.ts';

const RECORD: InboundRecord = {
  topic: 'millrace.ingress.v1',
  partition: 3,
  offset: 1_234_567_890_123,
  timestampMs: 1,
  key: Buffer.from('request-7'),
  value: Buffer.from([9, 8, 7]),
  headers: { traceparent: Buffer.from('00-aa'), tenant: Buffer.from('acme') },
  assignment: 1,
};

function input(changes: Partial<DeadLetterInput> = {}): DeadLetterInput {
  return {
    record: RECORD,
    topic: 'millrace.ingress.v1.dlq',
    partition: 1,
    stage: 'feature-extractor',
    code: 'MALFORMED',
    message: 'context: 9 bytes announced before the last 0',
    payload: 'full',
    ...changes,
  };
}

/** The dead letter as a consumer of the dead-letter topic gets it. */
function delivered(record: OutboundRecord, offset = 0): InboundRecord {
  return { ...record, headers: record.headers ?? {}, offset, timestampMs: 1_767_225_600_000, assignment: 1 };
}
const texts = (headers: Headers | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, value.toString()]));

describe('a dead letter', () => {
  it("carries the original key, bytes and headers, and Kafka Connect's error headers", () => {
    const letter = deadLetterRecord(input());
    expect(letter).toMatchObject({
      topic: 'millrace.ingress.v1.dlq',
      partition: 1,
      key: RECORD.key,
      value: RECORD.value,
    });
    expect(texts(letter.headers)).toEqual({
      traceparent: '00-aa',
      tenant: 'acme',
      '__connect.errors.topic': 'millrace.ingress.v1',
      '__connect.errors.partition': '3',
      '__connect.errors.offset': '1234567890123',
      '__connect.errors.stage': 'feature-extractor',
      '__connect.errors.exception.class.name': 'millrace.MALFORMED',
      '__connect.errors.exception.message': 'context: 9 bytes announced before the last 0',
    });
  });

  it('with payload: hash carries the sha256 of the bytes and says so', () => {
    const letter = deadLetterRecord(input({ payload: 'hash' }));
    const digest = createHash('sha256')
      .update(Buffer.from([9, 8, 7]))
      .digest('hex');
    expect(letter.value?.toString()).toBe(`sha256:${digest}`);
    expect(letter.key).toBe(RECORD.key);
    expect(parseDeadLetter(delivered(letter))?.payload).toBe('hash');
  });

  it('is whole, whatever its producer wrote into the header that marks a digest', () => {
    const headers = { 'millrace.value.digest': Buffer.from('sha256') };
    const letter = parseDeadLetter(delivered(deadLetterRecord(input({ record: { ...RECORD, headers } }))));
    expect(letter).toMatchObject({ payload: 'full', headers: {} });
  });

  it.each(['full', 'hash'] as const)('of a tombstone stays without value (%s)', (payload) => {
    expect(deadLetterRecord(input({ record: { ...RECORD, value: null, key: null }, payload }))).toMatchObject(
      { key: null, value: null },
    );
  });

  it('that fails again and again does not grow', () => {
    let record = RECORD;
    let size = 0;
    for (let round = 0; round < 20; round++) {
      const letter = delivered(
        deadLetterRecord(
          input({ record, payload: round % 2 === 0 ? 'full' : 'hash', message: `round ${round}` }),
        ),
      );
      if (round === 2) size = Object.keys(letter.headers).length;
      if (round > 2 && round % 2 === 0) expect(Object.keys(letter.headers)).toHaveLength(size);
      record = { ...letter, topic: RECORD.topic };
    }
    expect(texts(record.headers)['__connect.errors.exception.message']).toBe('round 19');
  });

  it.each(['x', 'é', '世', '😀'])('cuts the message at 1 KB, between characters (%s)', (character) => {
    for (let shift = 0; shift < 4; shift++) {
      const message = 'a'.repeat(shift) + character.repeat(2_000);
      const cut =
        deadLetterRecord(input({ message })).headers?.['__connect.errors.exception.message'] ??
        Buffer.alloc(0);
      expect(cut.length).toBeLessThanOrEqual(1_024);
      expect(cut.length).toBeGreaterThan(1_020);
      expect(message.startsWith(cut.toString('utf8'))).toBe(true);
    }
  });

  it('keeps original headers within bounds', () => {
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`h${index}`, Buffer.from('v')]),
    );
    expect(
      Object.keys(deadLetterRecord(input({ record: { ...RECORD, headers: many } })).headers ?? {}),
    ).toHaveLength(32 + 6);
    const large = { small: Buffer.alloc(100), large: Buffer.alloc(9_000), after: Buffer.alloc(1) };
    const kept = deadLetterRecord(input({ record: { ...RECORD, headers: large } })).headers ?? {};
    expect(kept).toHaveProperty('small');
    expect(kept).not.toHaveProperty('large');
  });
});

describe('parsing', () => {
  it('gives back what the record was, and the replay is that record', () => {
    fc.assert(
      fc.property(
        fc.option(fc.uint8Array()),
        fc.option(fc.uint8Array()),
        fc.dictionary(fc.string({ minLength: 1, maxLength: 20 }), fc.uint8Array({ maxLength: 30 }), {
          maxKeys: 8,
          noNullPrototype: true,
        }),
        fc.nat(),
        (key, value, headers, offset) => {
          const record = {
            ...RECORD,
            offset,
            key: key && Buffer.from(key),
            value: value && Buffer.from(value),
            headers: Object.fromEntries(
              Object.entries(headers).map(([name, bytes]) => [name, Buffer.from(bytes)]),
            ),
          };
          const letter = parseDeadLetter(delivered(deadLetterRecord(input({ record })), 5));
          expect(letter).toEqual({
            topic: record.topic,
            partition: 3,
            offset,
            stage: 'feature-extractor',
            code: 'MALFORMED',
            exceptionClass: 'millrace.MALFORMED',
            message: 'context: 9 bytes announced before the last 0',
            deadLetteredAtMs: 1_767_225_600_000,
            key: record.key,
            value: record.value,
            payload: 'full',
            headers: record.headers,
          });
          expect(letter && replayedRecord(letter, 9)).toEqual({
            topic: record.topic,
            partition: 9,
            key: record.key,
            value: record.value,
            headers: record.headers,
          });
        },
      ),
    );
  });

  it('a hashed one cannot be replayed', () => {
    const letter = parseDeadLetter(delivered(deadLetterRecord(input({ payload: 'hash' }))));
    expect(letter && replayedRecord(letter, 0)).toBeUndefined();
  });

  it("reads Kafka Connect's own", () => {
    const headers = {
      '__connect.errors.topic': Buffer.from('orders'),
      '__connect.errors.partition': Buffer.from('0'),
      '__connect.errors.offset': Buffer.from('42'),
      '__connect.errors.stage': Buffer.from('VALUE_CONVERTER'),
      '__connect.errors.exception.class.name': Buffer.from('org.apache.kafka.connect.errors.DataException'),
      '__connect.errors.exception.message': Buffer.from('bad'),
    };
    expect(parseDeadLetter({ ...RECORD, headers })).toMatchObject({
      topic: 'orders',
      offset: 42,
      code: undefined,
      exceptionClass: 'org.apache.kafka.connect.errors.DataException',
      headers: {},
    });
  });

  it.each([
    ['no headers', {}],
    [
      'no offset',
      { '__connect.errors.topic': Buffer.from('t'), '__connect.errors.partition': Buffer.from('0') },
    ],
    [
      'an offset that is no number',
      {
        '__connect.errors.topic': Buffer.from('t'),
        '__connect.errors.partition': Buffer.from('0'),
        '__connect.errors.offset': Buffer.from('-1e9'),
      },
    ],
  ])('is undefined with %s', (_, headers: Headers) => {
    expect(parseDeadLetter({ ...RECORD, headers })).toBeUndefined();
  });
});
