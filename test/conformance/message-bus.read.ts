import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BroadcastOptions, InboundRecord, MessageBus, Reader } from '../../src/ports/message-bus.ts';
import { type BusFactory, createTopic, produceTexts, texts } from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

interface Reading {
  reader: Reader;
  records: InboundRecord[];
  values(partition?: number): string[];
}

export function readConformance(create: CreateFactory): void {
  let run: BusFactory;
  let bus: MessageBus;

  beforeEach(async () => {
    run = await create();
    bus = await run.connect();
  });
  afterEach(() => run.close());

  const read = async (options: BroadcastOptions): Promise<Reading> => {
    const records: InboundRecord[] = [];
    const reader = await run.settle(bus.read(options, (batch) => records.push(...batch)));
    const values = (partition?: number): string[] =>
      records
        .filter((record) => partition === undefined || record.partition === partition)
        .map(({ value }) => value?.toString() ?? 'null');
    return { reader, records, values };
  };

  it('from the latest on, sees every record that is appended after it resolved, and none from before', async () => {
    for (let round = 0; round < 5; round++) {
      const topic = await createTopic(run, bus, 2);
      for (const p of [0, 1]) await produceTexts(run, bus, topic, p, texts('old', 3));
      const reading = await read({ topics: [topic], startAt: 'latest' });
      for (const p of [0, 1]) await produceTexts(run, bus, topic, p, texts('new', 20));
      await run.eventually(() => reading.records.length >= 40, 'the new records arrived');
      for (const p of [0, 1]) expect(reading.values(p)).toEqual(texts('new', 20));
      await run.settle(reading.reader.close());
    }
  });

  it('is not given headers without a value, which other producers can write', async () => {
    const topic = await createTopic(run, bus, 1);
    const headers = { none: null, ['__proto__']: null, kept: Buffer.from('x'), empty: Buffer.alloc(0) };
    await run.settle(run.produceForeign(topic, Buffer.from('v'), headers));
    const reading = await read({ topics: [topic], startAt: 'earliest' });
    await run.settle(reading.reader.caughtUp);
    const delivered = reading.records.map((record) => Object.entries(record.headers));
    expect(delivered).toEqual([
      [
        ['kept', Buffer.from('x')],
        ['empty', Buffer.alloc(0)],
      ],
    ]);
  });

  it('from the earliest on, has delivered all that lay there once it has caught up, and goes on', async () => {
    const topic = await createTopic(run, bus, 3);
    for (const p of [0, 2]) await produceTexts(run, bus, topic, p, texts(`p${p}-`, 700));
    const reading = await read({ topics: [topic], startAt: 'earliest' });
    await run.settle(reading.reader.caughtUp);
    expect(reading.records).toHaveLength(1_400);
    for (const p of [0, 2]) expect(reading.values(p)).toEqual(texts(`p${p}-`, 700));
    await produceTexts(run, bus, topic, 1, texts('new', 5));
    await run.eventually(() => reading.records.length >= 1_405, 'the new records arrived');
    expect(reading.values(1)).toEqual(texts('new', 5));
  });

  it('has caught up at once where there is nothing, or nothing is asked for', async () => {
    const topic = await createTopic(run, bus, 2);
    const empty = await read({ topics: [topic], startAt: 'earliest' });
    await run.settle(empty.reader.caughtUp);
    await produceTexts(run, bus, topic, 0, ['v']);
    const latest = await read({ topics: [topic], startAt: 'latest' });
    await run.settle(latest.reader.caughtUp);
    await run.eventually(() => empty.records.length === 1, 'the first reader got the record');
    expect(latest.records).toEqual([]);
  });

  it('reads only the partitions that it was asked for', async () => {
    const topic = await createTopic(run, bus, 3);
    for (let p = 0; p < 3; p++) await produceTexts(run, bus, topic, p, [`p${p}`]);
    const reading = await read({ topics: [topic], startAt: 'earliest', partitions: [0, 2] });
    await run.settle(reading.reader.caughtUp);
    await produceTexts(run, bus, topic, 1, ['more']);
    await run.pass(run.quietMs);
    expect(reading.values().sort()).toEqual(['p0', 'p2']);
  });

  it('reads several topics, and every reader gets everything', async () => {
    const topics = [await createTopic(run, bus, 1), await createTopic(run, bus, 2)];
    const readings = [await read({ topics, startAt: 'earliest' }), await read({ topics, startAt: 'latest' })];
    for (const topic of topics) await produceTexts(run, bus, topic, 0, texts('v', 10));
    for (const reading of readings) {
      await run.eventually(() => reading.records.length === 20, 'a reader got everything');
      for (const topic of topics) {
        const offsets = reading.records
          .filter((record) => record.topic === topic)
          .map(({ offset }) => offset);
        expect(offsets).toEqual([...Array(10).keys()]);
      }
    }
  });

  it('delivers no more than a fetch while it is paused, and everything once it goes on', async () => {
    const topic = await createTopic(run, bus, 2);
    const reading = await read({ topics: [topic], startAt: 'earliest' });
    for (const p of [0, 1]) await produceTexts(run, bus, topic, p, texts('first', 5));
    await run.eventually(() => reading.records.length === 10, 'the first records arrived');
    reading.reader.pause();
    reading.reader.pause();
    // what was under way when it was paused may come; what is appended then may not
    await run.pass(run.quietMs);
    for (const p of [0, 1]) await produceTexts(run, bus, topic, p, texts('then', 5));
    await run.pass(run.quietMs);
    const sinceThen = reading.records.length - 10;
    for (const p of [0, 1]) await produceTexts(run, bus, topic, p, texts('last', 5));
    await run.pass(run.quietMs);
    expect(reading.records.length - 10).toBe(sinceThen);
    reading.reader.resume();
    await run.eventually(() => reading.records.length === 30, 'everything arrived');
    for (const p of [0, 1])
      expect(reading.values(p)).toEqual([...texts('first', 5), ...texts('then', 5), ...texts('last', 5)]);
    await run.settle(reading.reader.close());
  });

  it('delivers nothing after close', async () => {
    const topic = await createTopic(run, bus, 1);
    const reading = await read({ topics: [topic], startAt: 'earliest' });
    await produceTexts(run, bus, topic, 0, ['v']);
    await run.eventually(() => reading.records.length === 1, 'the record arrived');
    await run.settle(reading.reader.close());
    await produceTexts(run, bus, topic, 0, ['late']);
    await run.pass(run.quietMs);
    expect(reading.values()).toEqual(['v']);
    await run.settle(reading.reader.close());
  });

  it('ends with its client', async () => {
    const topic = await createTopic(run, bus, 1);
    const reading = await read({ topics: [topic], startAt: 'earliest' });
    await run.settle(bus.close());
    await produceTexts(run, await run.connect(), topic, 0, ['late']);
    await run.pass(run.quietMs);
    expect(reading.records).toEqual([]);
  });
}
