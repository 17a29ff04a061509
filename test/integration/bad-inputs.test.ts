import { readFileSync } from 'node:fs';
import { CompressionTypes } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ControlEvent } from '../../src/contracts/records.ts';
import { identityKey, type RequestIdentity } from '../../src/core/outcome/identity.ts';
import type { OutboundRecord } from '../../src/ports/message-bus.ts';
import { type OutsideLedger, openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { eventually } from '../slow/real-pipeline.ts';
import { type InProcessPipeline, startInProcessPipeline } from './in-process-pipeline.ts';
import type { InputCase, SentRecord, Wire } from './input-case.ts';
import { SCORED_ALL_THE_SAME } from './odd-requests.ts';
import { REFUSED } from './refused-requests.ts';
import {
  headerText,
  type LandedResult,
  openResultsByIdentity,
  type ResultsByIdentity,
  stockPartition,
} from './results-by-identity.ts';
import { encoder, openStockClient, readSchema, requestFor, type StockClient } from './stock-client.ts';
import { UNREADABLE } from './unreadable-records.ts';

const PARTITIONS = 4;
const REQUEST_BYTES_MAX = 65_536;
/** Of the tenant whose topic takes more than any dead-letter topic. */
const LARGE_RECORD_BYTES = 2 * 2 ** 20;
const LARGE_TOPIC_BYTES = 3 * 2 ** 20;

/** More than any batch may unpack to, and on the wire some 40 KB. */
const UNPACKED_BYTES = 40 * 2 ** 20;

let pipeline: InProcessPipeline;
let stock: StockClient;
let results: ResultsByIdentity;
let ledger: OutsideLedger;
let wire: Wire;
let largeIngress: string;
let sent = 0;

beforeAll(async () => {
  pipeline = await startInProcessPipeline(
    { tenants: ['large'], 'limits.requestBytesMax': REQUEST_BYTES_MAX, 'kafka.partitions': PARTITIONS },
    {
      topic: (spec, topics) =>
        spec.name === topics.ingress('large')
          ? { ...spec, config: { ...spec.config, 'max.message.bytes': String(LARGE_TOPIC_BYTES) } }
          : spec,
    },
  );
  const { client, topics, settings } = pipeline;
  largeIngress = topics.ingress('large');
  stock = await openStockClient();
  const ingress = [topics.ingress(), largeIngress];
  results = await openResultsByIdentity(client, ingress);
  ledger = await openOutsideLedger(client, { ingress });
  const schema = readSchema('score-request.v1');
  const schemaId = await stock.register(`${topics.ingress()}-value`, schema);
  wire = {
    stock,
    schemaId,
    encode: encoder(schema, schemaId),
    ingress: topics.ingress(),
    foreignSubject: `${settings.prefix}.foreign`,
  };
});

afterAll(async () => {
  try {
    expect(await ledger.drained(30_000, sent)).toBe(true);
    expect(ledger.summary()).toMatchObject({
      ingress: sent,
      inFlight: 0,
      unknown: 0,
      duplicatesVisible: 0,
      balanced: true,
    });
  } finally {
    await ledger.close();
    await results.close();
    await stock.close();
    await pipeline.close();
  }
});

async function produce(
  topic: string,
  partition: number,
  records: readonly SentRecord[],
): Promise<RequestIdentity[]> {
  const messages = records.map(({ key = null, value, headers }) => ({
    key,
    value,
    ...(headers === undefined ? {} : { headers }),
  }));
  sent += records.length;
  return stock.produce(topic, partition, messages);
}

let ids = 0;

/** Sends the case's record and a good one right behind it on the same partition; the good one is scored, whatever the other was. */
async function sendWithFollower({ send }: InputCase): Promise<{
  id: string;
  identity: RequestIdentity;
  record: SentRecord;
  landed: LandedResult;
}> {
  ids += 1;
  const id = `case-${ids}`;
  const record = { key: Buffer.from(id), ...(await send(id, wire)) };
  const follower = { key: Buffer.from(`${id}-good`), value: wire.encode(requestFor(`${id}-good`)) };
  const [identity, behind] = await produce(wire.ingress, ids % PARTITIONS, [record, follower]);
  if (identity === undefined || behind === undefined) throw new Error('nothing was produced');
  const good = await results.first(behind);
  expect(good.result).toMatchObject({ requestId: `${id}-good`, outcome: 'SCORED', candidatesScored: 3 });
  return { id, identity, record, landed: await results.first(identity) };
}

function expectNamed({ result, record }: LandedResult, requestId: string, identity: RequestIdentity): void {
  expect(result.identity).toEqual(identity);
  expect(result.requestId).toBe(requestId);
  expect(record.key?.toString()).toBe(requestId);
  expect(record.partition).toBe(stockPartition(record.topic, requestId, PARTITIONS));
}

function nameOf({ named }: InputCase, id: string, identity: RequestIdentity): string {
  if (named === 'by its place') return identityKey(identity);
  return named === undefined ? id : named(id);
}

function expectReason({ result }: LandedResult, { code, says = [] }: Pick<InputCase, 'code' | 'says'>): void {
  expect(result.reason).toMatchObject({ code, retryable: false });
  for (const part of says) expect(result.reason?.message).toContain(part);
  expect(result.reason?.message.length).toBeLessThan(500);
}

function expectDeadLetter(identity: RequestIdentity, sentRecord: SentRecord, landed: LandedResult): void {
  const letters = results.deadLettersOf(identity);
  expect(letters).toHaveLength(1);
  const [letter] = letters;
  if (letter === undefined) return;
  expect(letter.value).toEqual(sentRecord.value);
  expect(letter.key).toEqual(sentRecord.key);
  expect(headerText(letter, 'topic')).toBe(identity.topic);
  expect(headerText(letter, 'partition')).toBe(String(identity.partition));
  expect(headerText(letter, 'offset')).toBe(String(identity.offset));
  expect(headerText(letter, 'stage')).toBe('feature-extractor');
  expect(headerText(letter, 'exception.class.name')).toBe(`millrace.${landed.result.reason?.code}`);
  expect(headerText(letter, 'exception.message')).toBe(landed.result.reason?.message);
  for (const [name, value] of Object.entries(sentRecord.headers ?? {}))
    if (!name.startsWith('__connect.')) expect(letter.headers[name]).toEqual(value);
}

describe('records that cannot be read', () => {
  it.each(UNREADABLE)('$name', async (input) => {
    const { id, identity, record, landed } = await sendWithFollower(input);
    expect(landed.result.outcome).toBe('DEAD_LETTERED');
    expectNamed(landed, nameOf(input, id, identity), identity);
    expectReason(landed, input);
    await eventually(() => results.deadLettersOf(identity).length > 0, 'the dead letter');
    expectDeadLetter(identity, record, landed);
  });

  it('a record larger than any request may be, and than the dead-letter topic takes: its digest is kept, and the partition goes on', async () => {
    const value = Buffer.concat([wire.encode(requestFor('large')), Buffer.alloc(LARGE_RECORD_BYTES)]);
    const [identity] = await produce(largeIngress, 0, [{ key: Buffer.from('large'), value }]);
    const [behind] = await produce(largeIngress, 0, [
      { key: Buffer.from('behind'), value: wire.encode(requestFor('behind')) },
    ]);
    if (identity === undefined || behind === undefined) throw new Error('nothing was produced');
    const landed = await results.first(identity);
    expect(landed.result).toMatchObject({ outcome: 'DEAD_LETTERED', requestId: 'large' });
    expectReason(landed, { code: 'TOO_LARGE', says: [String(value.length), '1048576'] });
    await eventually(() => results.deadLettersOf(identity).length > 0, 'the dead letter');
    const [letter] = results.deadLettersOf(identity);
    expect(letter?.value?.toString()).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(letter?.key?.toString()).toBe('large');
    expect((await results.first(behind)).result.outcome).toBe('SCORED');
    const group = `${pipeline.topics.prefix}.feature-extractor`;
    await eventually(
      async () =>
        (await pipeline.client.bus.admin.committed(group, largeIngress)).get(0) === behind.offset + 1,
      'the partition advances',
    );
  });

  it('a batch that unpacks to more than a consumer takes: each of its records ends, and the partition goes on', async () => {
    const records = [
      { key: 'bomb', value: Buffer.alloc(UNPACKED_BYTES) },
      { key: 'beside', value: wire.encode(requestFor('beside')) },
    ];
    const identities = await stock.produce(wire.ingress, 1, records, CompressionTypes.GZIP);
    const [behind] = await produce(wire.ingress, 1, [
      { key: Buffer.from('behind-bomb'), value: wire.encode(requestFor('behind-bomb')) },
    ]);
    if (behind === undefined) throw new Error('nothing was produced');
    sent += identities.length;
    for (const identity of identities) {
      const landed = await results.first(identity);
      expect(landed.result.outcome).toBe('DEAD_LETTERED');
      expectNamed(landed, identityKey(identity), identity);
      expectReason(landed, { code: 'TOO_LARGE', says: ['33554432', `${identities[0]?.offset} to`] });
      await eventually(() => results.deadLettersOf(identity).length > 0, 'the dead letter');
      const [letter] = results.deadLettersOf(identity);
      expect(letter?.value?.toString()).toMatch(/^sha256:[0-9a-f]{64}$/);
    }
    expect((await results.first(behind)).result.outcome).toBe('SCORED');
  });

  it('a record above the limit of the topic: its producer is told, and nothing is stored', async () => {
    const { client } = pipeline;
    const tooLarge: OutboundRecord = {
      topic: wire.ingress,
      partition: 0,
      key: Buffer.from('huge'),
      value: Buffer.alloc(LARGE_RECORD_BYTES),
    };
    const highBefore = await client.bus.admin.watermarks(wire.ingress);
    await expect(client.bus.produce(tooLarge)).rejects.toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringContaining('max.message.bytes'),
    });
    await expect(
      stock.produce(wire.ingress, 0, [{ key: tooLarge.key, value: tooLarge.value }]),
    ).rejects.toMatchObject({ type: 'MESSAGE_TOO_LARGE' });
    expect(await client.bus.admin.watermarks(wire.ingress)).toEqual(highBefore);
  });
});

describe('requests that are refused', () => {
  it.each(REFUSED)('$name', async (input) => {
    const { id, identity, landed } = await sendWithFollower(input);
    expect(landed.result.outcome).toBe('REJECTED');
    expectNamed(landed, nameOf(input, id, identity), identity);
    expectReason(landed, input);
    expect(landed.record.value?.length).toBeLessThan(4_096);
    expect(results.deadLettersOf(identity)).toEqual([]);
  });
});

describe('requests that are odd, and scored all the same', () => {
  it.each(SCORED_ALL_THE_SAME)('$name', async (input) => {
    const { id, identity, landed } = await sendWithFollower(input);
    const { result } = landed;
    expect(result.reason).toBeNull();
    expect(result).toMatchObject({ outcome: 'SCORED', candidatesScored: input.scores });
    expect(result.scores.length).toBe(4 * (input.scores ?? 0));
    const own = pipeline.client.codecs.for('ScoredResult').headers;
    if (input.resultHeaders !== undefined)
      expect(landed.record.headers).toEqual({ ...input.resultHeaders, ...own });
    expectNamed(landed, nameOf(input, id, identity), identity);
  });

  it('one requestId twice: two identities, two results on one partition', async () => {
    const record = { key: Buffer.from('twice'), value: wire.encode(requestFor('twice')) };
    const [first, second] = await produce(wire.ingress, 2, [record, record]);
    if (first === undefined || second === undefined) throw new Error('nothing was produced');
    const landed = [await results.first(first), await results.first(second)];
    for (const each of landed)
      expect(each.result).toMatchObject({ requestId: 'twice', outcome: 'SCORED', candidatesScored: 3 });
    expect(landed[0]?.record.partition).toBe(landed[1]?.record.partition);
    expect([results.of(first).length, results.of(second).length]).toEqual([1, 1]);
  });
});

describe('bad commands on the control topic', () => {
  const SCOPE = 'policy/one-pool';

  async function publish(value: Buffer): Promise<ControlEvent> {
    const { client, topics } = pipeline;
    const codec = client.codecs.for('ControlEvent');
    const [place] = await stock.produce(topics.fixed('control'), 0, [{ key: SCOPE, value }]);
    let event: ControlEvent | undefined;
    const reader = await client.bus.read(
      { topics: [topics.fixed('control-events')], startAt: 'earliest' },
      (records) => {
        for (const record of records) {
          const decoded = codec.decode(record.value);
          if (decoded.status === 'ok' && decoded.value.commandOffset === place?.offset) event = decoded.value;
        }
      },
    );
    await eventually(() => event !== undefined, 'the event of the command');
    await reader.close();
    if (event === undefined) throw new Error('unreachable');
    return event;
  }

  async function command(body: string): Promise<Buffer> {
    const schema = readSchema('control-command.v1');
    const schemaId = await stock.register(`${pipeline.topics.fixed('control')}-value`, schema);
    ids += 1;
    return encoder(
      schema,
      schemaId,
    )({
      commandId: `command-${ids}`,
      scope: SCOPE,
      type: 'PUBLISH_POLICY',
      body: Buffer.from(body),
      actor: 'somebody',
    });
  }

  const onePool = readFileSync('examples/policies/one-pool.yaml', 'utf8');
  const COMMANDS: readonly { name: string; value(): Buffer | Promise<Buffer>; says: readonly string[] }[] = [
    {
      name: 'a policy that names an accelerator which the fleet does not have',
      value: () =>
        command(onePool.replace('accelerator: cpu', 'accelerator: tpu9').replace('version: 1', 'version: 7')),
      says: ['tpu9', 'cpu'],
    },
    { name: 'a blank policy', value: () => command(''), says: ['empty'] },
    { name: 'bytes without a frame', value: () => Buffer.from('publish!'), says: ['NO_FRAME'] },
  ];

  it.each(COMMANDS)('$name: refused with its reason, and the live policy stays', async ({ value, says }) => {
    const liveBefore = await pipeline.store.readPointer(SCOPE);
    const event = await publish(await value());
    expect(event).toMatchObject({ type: 'command-refused', accepted: false });
    for (const part of says) expect(event.reason).toContain(part);
    expect(await pipeline.store.readPointer(SCOPE)).toEqual(liveBefore);
    const id = `after-${event.commandOffset}`;
    const [identity] = await produce(wire.ingress, 0, [
      { key: Buffer.from(id), value: wire.encode(requestFor(id)) },
    ]);
    if (identity === undefined) throw new Error('nothing was produced');
    const { result } = await results.first(identity);
    expect(result).toMatchObject({ outcome: 'SCORED', policy: { name: 'one-pool', version: 1, epoch: 0 } });
  });
});
