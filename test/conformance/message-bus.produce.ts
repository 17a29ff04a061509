import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Headers, InboundRecord, MessageBus } from '../../src/ports/message-bus.ts';
import {
  type BusFactory,
  createTopic,
  produceTexts,
  rejection,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

export function produceConformance(create: CreateFactory): void {
  let run: BusFactory;
  let bus: MessageBus;

  beforeEach(async () => {
    run = await create();
    bus = await run.connect();
  });
  afterEach(() => run.close());

  /** Everything in a topic, once `count` records have arrived. */
  const readAll = async (
    topic: string,
    count: number,
    reading: MessageBus = bus,
  ): Promise<InboundRecord[]> => {
    const records: InboundRecord[] = [];
    await run.settle(
      reading.read({ topics: [topic], startAt: 'earliest' }, (batch) => records.push(...batch)),
    );
    await run.eventually(() => records.length >= count, `${count} records arrived`);
    return records;
  };

  it('stores the records of a partition in the order of the calls', async () => {
    const topic = await createTopic(run, bus, 2);
    const produced = texts('v', 400).map((value, i) =>
      bus.produce({ topic, partition: i % 2, key: Buffer.from(value), value: Buffer.from(value) }),
    );
    await run.settle(Promise.all(produced));
    const records = await readAll(topic, 400);
    for (const partition of [0, 1]) {
      const ofPartition = records.filter((record) => record.partition === partition);
      expect(ofPartition.map(({ value }) => value?.toString())).toEqual(
        texts('v', 400).filter((_, i) => i % 2 === partition),
      );
      expect(ofPartition.map(({ offset }) => offset)).toEqual([...Array(200).keys()]);
    }
  });

  it('tells at which offset each record was stored, before it resolves', async () => {
    const topic = await createTopic(run, bus, 2);
    const offsets = new Map<string, number>();
    const produced = texts('v', 100).map(async (value, i) => {
      const record = { topic, partition: i % 2, key: Buffer.from(value), value: Buffer.from(value) };
      await bus.produce(record, (offset) => offsets.set(value, offset));
      expect(offsets.has(value)).toBe(true);
    });
    await run.settle(Promise.all(produced));
    for (const { value, offset } of await readAll(topic, 100))
      expect([`${value}`, offsets.get(`${value}`)]).toEqual([`${value}`, offset]);
  });

  it('keeps the order of calls made while earlier ones are under way', async () => {
    const topic = await createTopic(run, bus, 1);
    const values = texts('v', 60);
    const produced: Promise<void>[] = [];
    for (const value of values) {
      produced.push(bus.produce({ topic, partition: 0, key: null, value: Buffer.from(value) }));
      if (produced.length % 7 === 0) await run.pass(1);
    }
    await run.settle(Promise.all(produced));
    const records = await readAll(topic, 60);
    expect(records.map(({ value }) => value?.toString())).toEqual(values);
  });

  it('keeps each record on the partition that its sender chose, with many senders at once', async () => {
    const topic = await createTopic(run, bus, 5);
    const senders = [bus, await run.connect(), await run.connect()];
    const produced = senders.flatMap((sender, s) =>
      Array.from({ length: 100 }, (_, i) => {
        const partition = (i * 7 + s) % 5;
        // The same key everywhere: whoever hashed it would send all records to one partition.
        return sender.produce({
          topic,
          partition,
          key: Buffer.from('key'),
          value: Buffer.from(`${partition}`),
        });
      }),
    );
    await run.settle(Promise.all(produced));
    const records = await readAll(topic, 300);
    expect(records).toHaveLength(300);
    for (const record of records) expect(record.value?.toString()).toBe(`${record.partition}`);
  });

  const cases: { what: string; key: Buffer | null; value: Buffer | null; headers?: Headers }[] = [
    { what: 'no key and no headers', key: null, value: Buffer.from('value') },
    { what: 'a tombstone', key: Buffer.from('key'), value: null },
    { what: 'neither key nor value', key: null, value: null },
    { what: 'an empty key and an empty value', key: Buffer.alloc(0), value: Buffer.alloc(0) },
    { what: 'every byte', key: EVERY_BYTE, value: EVERY_BYTE, headers: { bytes: EVERY_BYTE } },
    {
      what: 'several headers, one of them empty',
      key: null,
      value: Buffer.from('v'),
      headers: { a: Buffer.from('1'), 'b-c.d_e': Buffer.alloc(0), z: Buffer.from('ü') },
    },
    { what: 'half a megabyte', key: null, value: Buffer.alloc(512 * 1024, EVERY_BYTE) },
  ];
  it.each(cases)('delivers the same bytes: $what', async ({ key, value, headers }) => {
    const topic = await createTopic(run, bus, 1);
    const record = { topic, partition: 0, key, value };
    await run.settle(bus.produce(headers === undefined ? record : { ...record, headers }));
    const [delivered] = await readAll(topic, 1);
    expect(asHex(delivered?.key)).toBe(asHex(key));
    expect(asHex(delivered?.value)).toBe(asHex(value));
    expect(headersAsHex(delivered?.headers ?? {})).toEqual(headersAsHex(headers ?? {}));
  });

  it('has taken the bytes once it resolved: the sender may use its buffers again', async () => {
    const topic = await createTopic(run, bus, 1);
    const value = Buffer.from('before');
    await run.settle(bus.produce({ topic, partition: 0, key: value, value, headers: { h: value } }));
    value.write('AFTER!');
    const [delivered] = await readAll(topic, 1);
    expect(delivered?.key?.toString()).toBe('before');
    expect(delivered?.value?.toString()).toBe('before');
    expect(delivered?.headers['h']?.toString()).toBe('before');
  });

  it("stamps records with the broker's append time", async () => {
    const topic = await createTopic(run, bus, 1, { 'message.timestamp.type': 'LogAppendTime' });
    await produceTexts(run, bus, topic, 0, ['first']);
    await run.pass(60);
    await produceTexts(run, bus, topic, 0, ['second']);
    const [first, second] = await readAll(topic, 2);
    const betweenMs = (second?.timestampMs ?? 0) - (first?.timestampMs ?? 0);
    expect(betweenMs).toBeGreaterThanOrEqual(55);
    expect(betweenMs).toBeLessThan(30_000);
    expect(Number.isInteger(first?.timestampMs)).toBe(true);
  });

  it('rejects a record that is too large with TOO_LARGE, and the others go on', async () => {
    const topic = await createTopic(run, bus, 1, { 'max.message.bytes': '20000' });
    const send = (value: Buffer): Promise<void> => bus.produce({ topic, partition: 0, key: null, value });
    const before = send(Buffer.from('before'));
    const tooLarge = rejection(run, send(Buffer.alloc(40_000, EVERY_BYTE)));
    const after = send(Buffer.from('after'));
    await run.settle(Promise.all([before, after]));
    expect(await tooLarge).toMatchObject({ code: 'TOO_LARGE' });
    await run.settle(send(Buffer.from('later')));
    const records = await readAll(topic, 3);
    expect(records.map(({ value }) => value?.toString())).toEqual(['before', 'after', 'later']);
  });

  it('rejects records for a topic that does not exist with BUS_UNAVAILABLE, and the others go on', async () => {
    const topic = await createTopic(run, bus, 1);
    const value = Buffer.from('v');
    const known = bus.produce({ topic, partition: 0, key: null, value });
    const unknown = bus.produce({ topic: uniqueName('missing'), partition: 0, key: null, value });
    expect(await rejection(run, unknown)).toMatchObject({ code: 'BUS_UNAVAILABLE' });
    await run.settle(known);
    await readAll(topic, 1);
  });

  it('stores what was produced before close, and rejects what comes after it', async () => {
    const topic = await createTopic(run, bus, 3);
    const produced = texts('v', 90).map((value, i) =>
      bus.produce({ topic, partition: i % 3, key: null, value: Buffer.from(value) }),
    );
    await run.settle(bus.close());
    await run.settle(Promise.all(produced));
    const late = bus.produce({ topic, partition: 0, key: null, value: Buffer.from('late') });
    expect(await rejection(run, late)).toMatchObject({ code: 'BUS_UNAVAILABLE' });
    const records = await readAll(topic, 90, await run.connect());
    expect(records.map(({ value }) => value?.toString()).sort()).toEqual(texts('v', 90).sort());
  });

  it('may be closed twice', async () => {
    await run.settle(Promise.all([bus.close(), bus.close()]));
    await run.settle(bus.close());
  });
}

function asHex(bytes: Buffer | null | undefined): string | null | undefined {
  return bytes === null ? null : bytes?.toString('hex');
}

function headersAsHex(headers: Headers): Record<string, string | null | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, asHex(value)]));
}
