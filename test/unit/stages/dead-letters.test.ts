import { describe, expect, it } from 'vitest';
import { carriedRequest, carrying } from '../../../src/contracts/headers.ts';
import type { InboundRecord } from '../../../src/ports/message-bus.ts';
import { createDeadLetters } from '../../../src/stages/dead-letters.ts';
import { createResultWriter } from '../../../src/stages/results.ts';
import { codecs, inbound, resultOf, topics } from './records.fixture.ts';

interface Value {
  requestId: string;
  identity?: { topic: string; partition: number; offset: number };
  resultPartition: number | null;
}

const OPTIONS: Parameters<typeof createDeadLetters<Value>>[0] = {
  stage: 'test-stage',
  topics,
  results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 4),
  payload: 'full',
  partitionsOf: () => 2,
  requestOf: (value) => value,
};
const deadLetters = createDeadLetters<Value>(OPTIONS);

function letters(record: InboundRecord, value: Value | undefined, payload?: 'hash') {
  const [letter, result, ...more] = deadLetters(record, value, 'MALFORMED', 'truncated', payload);
  expect(more).toEqual([]);
  return { letter, result, read: resultOf(result) };
}

const place = { topic: topics.ingress(), partition: 5, offset: 42 };

describe('a dead letter', () => {
  it('is the original bytes on the topic’s dead-letter topic, and a result that says so', () => {
    const value = Buffer.from('bytes');
    const { letter, result, read } = letters(inbound({ ...place, value }), undefined);
    expect(letter).toMatchObject({ topic: topics.deadLetter(topics.ingress()), partition: 1, value });
    expect(letter?.headers?.['__connect.errors.stage']?.toString()).toBe('test-stage');
    expect(result).toMatchObject({ topic: topics.fixed('scored-results') });
    expect(read).toMatchObject({
      outcome: 'DEAD_LETTERED',
      reason: { code: 'MALFORMED', message: 'truncated', retryable: false },
    });
  });

  it('can do without the bytes', () => {
    const { letter } = letters(inbound({ value: Buffer.from('bytes') }), undefined, 'hash');
    expect(letter?.value?.toString()).toMatch(/^sha256:/);
  });

  it.each<[what: string, key: Buffer | null, value: Value | undefined, name: string]>([
    ['the request’s own id', Buffer.from('key'), { requestId: 'r1', resultPartition: null }, 'r1'],
    ['the key’s text', Buffer.from('key'), undefined, 'key'],
    ['its place without a key', null, undefined, `${topics.ingress()}/5/42`],
    ['its place for a key that is no text', Buffer.from([0xff, 0]), undefined, `${topics.ingress()}/5/42`],
  ])('goes by %s', (_name, key, value, name) => {
    const { result, read } = letters(inbound({ ...place, key }), value);
    expect(read.requestId).toBe(name);
    expect(result?.key?.toString()).toBe(name);
  });

  it('has the identity of the record', () => {
    expect(letters(inbound(place), undefined).read.identity).toEqual(place);
  });

  it('has the identity of the request where the record is a later one', () => {
    const identity = { topic: 'ingress', partition: 1, offset: 2 };
    const value = { requestId: 'r1', identity, resultPartition: null };
    expect(letters(inbound(place), value).read.identity).toEqual(identity);
  });

  it('is told where the request wants its result', () => {
    const value = { requestId: 'r1', resultPartition: 3 };
    expect(letters(inbound(place), value).result?.partition).toBe(3);
  });
});

describe('a dead letter of what stages hand to each other', () => {
  const ofInternal = createDeadLetters<Value>({ ...OPTIONS, requestIn: carriedRequest });
  const identity = { topic: topics.ingress('acme'), partition: 7, offset: 123_456_789_012 };
  const record = (key: Buffer | null, resultPartition: number | null, headers = {}) =>
    inbound({
      topic: topics.fixed('features'),
      partition: 1,
      offset: 9,
      key,
      headers: { ...carrying({}, { identity, resultPartition }), ...headers },
    });
  const resultIn = (from: InboundRecord) => {
    const [, result] = ofInternal(from, undefined, 'UNKNOWN_SCHEMA', 'of another registry');
    return { result, read: resultOf(result) };
  };

  it('ends the request where its value cannot be read: with its identity, under its id, where it is awaited', () => {
    const { result, read } = resultIn(record(Buffer.from('r1'), 3));
    expect(read).toMatchObject({ requestId: 'r1', identity, outcome: 'DEAD_LETTERED' });
    expect(result?.partition).toBe(3);
  });

  it('goes where the id leads without a partition of its own', () => {
    expect(resultIn(record(Buffer.from('r1'), null)).result?.partition).toBe(
      resultIn(inbound({ ...place, key: Buffer.from('r1') })).result?.partition,
    );
  });

  it('keeps an id that no key of a client could be told by', () => {
    expect(resultIn(record(Buffer.from('a\tb'), null)).read.requestId).toBe('a\tb');
  });

  it.each([
    ['not said', {}],
    ['nonsense', { 'millrace.identity': Buffer.from('somewhere/else') }],
    ['too long', { 'millrace.identity': Buffer.from(`${'t'.repeat(300)}/0/1`) }],
  ])('is about the record itself where its request is %s', (_what, headers) => {
    const plain = inbound({ ...place, key: Buffer.from('r1'), headers });
    expect(resultIn(plain).read).toMatchObject({ requestId: 'r1', identity: place });
  });

  it('of ingress takes nobody else’s identity from a header', () => {
    const forged = inbound({ ...place, headers: carrying({}, { identity, resultPartition: 3 }) });
    const { read } = letters(forged, undefined);
    expect(read.identity).toEqual(place);
  });
});
