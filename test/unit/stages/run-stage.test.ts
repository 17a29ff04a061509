import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import type { Decoded, RecordCodec } from '../../../src/contracts/codec.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import type { InboundRecord, OutboundRecord } from '../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import { type Delivery, runStage, type StageInput } from '../../../src/stages/run-stage.ts';
import { HandDrivenBus, settled } from './hand-driven-bus.ts';
import { inbound, topics } from './records.fixture.ts';

const UNAVAILABLE = new MillraceError('REGISTRY_UNAVAILABLE', 'nobody there');
const output = (topic: string, text?: string): OutboundRecord => ({
  topic,
  partition: 0,
  key: text === undefined ? null : Buffer.from(text),
  value: null,
});
const record = (fields: Partial<InboundRecord> = {}): InboundRecord =>
  inbound({ topic: 'in', value: Buffer.from('ok'), ...fields });

/** Values are text: `schema` is written with a schema that has to be looked up, `bad` cannot be read. */
class TextCodec implements RecordCodec<string> {
  readonly record = 'Outcome';
  readonly headers = {};
  known = false;

  encode(value: string): Buffer {
    return Buffer.from(value);
  }

  decode(bytes: Buffer | null): Decoded<string> {
    const text = bytes?.toString() ?? '';
    if (text === 'bad') return { status: 'unreadable', code: 'MALFORMED', message: 'it is bad' };
    if (text === 'schema' && !this.known) return { status: 'schema-unknown', schemaId: 9 };
    return { status: 'ok', value: text };
  }
}

async function start(overrides: Partial<StageInput<string>> = {}, bus = new HandDrivenBus()) {
  const clock = virtualClock();
  const telemetry = silentTelemetry();
  const codec = new TextCodec();
  const taken: Delivery<string>[] = [];
  /** Answers of the registry, first come first served; learned once they are used up. */
  const registry: (() => Promise<'learned'>)[] = [];
  const deps = {
    bus,
    clock,
    telemetry,
    topics,
    topicDelay: createTopicDelay(),
    random: seededRandom(1),
    codecs: {
      for: () => {
        throw new Error('not used');
      },
      register: async () => {},
      fingerprintIn: () => '',
      learn: async () => {
        const answer = await (registry.shift()?.() ?? Promise.resolve<'learned'>('learned'));
        codec.known = true;
        return answer;
      },
    },
  };
  const running = runStage<string>(deps, {
    name: 'test',
    subscription: { group: 'g', topics: ['in'], startAt: 'earliest' },
    codec,
    tries: 3,
    handle: (delivery) => taken.push(delivery),
    deadLetters: (_record, value, code, message, payload) => [
      output('dlq', `${payload ?? 'full'}, ${value ?? 'no value'}, ${code}: ${message}`),
      output('result'),
    ],
    ...overrides,
  });
  return { bus, clock, telemetry, codec, taken, registry, running };
}

function produced(bus: HandDrivenBus): string[] {
  return bus.producing.map(({ record: { topic, key } }) => (key === null ? topic : `${topic} ${key}`));
}

describe('a record that is finished', () => {
  it('is acknowledged once all of its outputs are stored, and not before', async () => {
    const { bus, taken, running } = await start();
    const stage = await running;
    bus.deliver(record());
    taken[0]?.finish([output('a'), output('b')]);
    bus.producing[1]?.store();
    await settled();
    expect(bus.acknowledged).toEqual([]);
    expect(stage.inFlight()).toBe(1);
    bus.producing[0]?.store();
    await settled();
    expect(bus.acknowledged).toHaveLength(1);
    expect(stage.inFlight()).toBe(0);
  });

  it('is acknowledged at once where it has no outputs', async () => {
    const { bus, taken, running } = await start();
    await running;
    bus.deliver(record());
    taken[0]?.finish([]);
    expect(bus.acknowledged).toHaveLength(1);
  });

  it('keeps its acknowledgement where the bus delivers before it hands out the subscription', async () => {
    const bus = new HandDrivenBus();
    bus.holdBackSubscribe();
    const { taken } = await start({}, bus);
    bus.deliver(record({ offset: 5 }));
    taken[0]?.finish([]);
    expect(bus.acknowledged).toEqual([]);
    bus.letSubscribe();
    await settled();
    expect(bus.acknowledged.map(({ offset }) => offset)).toEqual([5]);
  });
});

describe('a handler that throws', () => {
  it.each([
    ['an error of ours keeps its code', new MillraceError('INVALID_TENSOR', 'odd'), 'INVALID_TENSOR'],
    ['any other error is poison', new TypeError('odd'), 'POISON'],
  ])('is tried three times, then the record is a dead letter: %s', async (_name, error, code) => {
    let tries = 0;
    const { bus, clock, running } = await start({
      handle: () => {
        tries += 1;
        throw error;
      },
    });
    await running;
    bus.deliver(record());
    expect(tries).toBe(1);
    await clock.advanceBy(1_000);
    expect(tries).toBe(3);
    expect(produced(bus)).toEqual([`dlq full, ok, ${code}: failed 3 times: odd`, 'result']);
    for (const each of bus.producing) each.store();
    await settled();
    expect(bus.acknowledged).toHaveLength(1);
  });

  it('disturbs no other record of the delivery', async () => {
    const seen: string[] = [];
    const { bus, running } = await start({
      handle: ({ value }) => {
        if (value === 'poison') throw new Error('odd');
        seen.push(value);
      },
    });
    await running;
    bus.deliver(record({ value: Buffer.from('poison') }), record({ offset: 1 }));
    expect(seen).toEqual(['ok']);
  });

  it('that then succeeds leaves no dead letter', async () => {
    let tries = 0;
    const { bus, clock, running } = await start({
      handle: (delivery) => {
        tries += 1;
        if (tries < 3) throw new Error('odd');
        delivery.finish([]);
      },
    });
    await running;
    bus.deliver(record());
    await clock.advanceBy(1_000);
    expect([produced(bus), bus.acknowledged.length]).toEqual([[], 1]);
  });
});

describe('a record that cannot be read', () => {
  it('is a dead letter with the reason, and never handled', async () => {
    const { bus, taken, running } = await start();
    await running;
    bus.deliver(record({ value: Buffer.from('bad') }));
    expect(produced(bus)).toEqual(['dlq full, no value, MALFORMED: it is bad', 'result']);
    expect(taken).toEqual([]);
  });
});

describe('a record of which no dead letter can be made', () => {
  const cannot = (): never => {
    throw new Error('no letter today');
  };

  it.each(['bad', 'poison', 'schema'])('waits, and disturbs no other record: %s', async (text) => {
    let isBroken = true;
    const { bus, clock, telemetry, running } = await start({
      handle: (delivery) => {
        if (delivery.value !== 'ok') throw new Error('odd');
        delivery.finish([]);
      },
      deadLetters: () => (isBroken ? cannot() : [output('dlq')]),
    });
    const stage = await running;
    bus.deliver(record({ value: Buffer.from(text) }), record({ offset: 1 }));
    await clock.advanceBy(3_000);
    expect([bus.acknowledged.map(({ offset }) => offset), produced(bus), stage.inFlight()]).toEqual([
      [1],
      [],
      1,
    ]);
    expect(telemetry.logs.at(-1)).toMatchObject({ level: 'error', fields: { error: 'no letter today' } });
    isBroken = false;
    await clock.advanceBy(1_000);
    bus.producing[0]?.store();
    await settled();
    expect([bus.acknowledged.map(({ offset }) => offset), stage.inFlight()]).toEqual([[1, 0], 0]);
  });

  it('in its short form neither, waits as well', async () => {
    let letters = 0;
    const { bus, clock, running } = await start({
      deadLetters: (_record, _value, _code, _message, payload) => {
        if (payload === 'hash' && letters++ === 0) cannot();
        return [output(`dlq ${payload ?? 'full'}`)];
      },
    });
    await running;
    bus.deliver(record({ value: Buffer.from('bad') }));
    bus.producing[0]?.refuse(new MillraceError('TOO_LARGE', 'far too large'));
    await clock.advanceBy(1_000);
    expect(produced(bus)).toEqual(['dlq full']);
  });

  it('is left to the next owner by a stage that is closed', async () => {
    const { bus, clock, running } = await start({ deadLetters: cannot });
    const stage = await running;
    bus.assign({ topic: 'in', partition: 0 });
    bus.deliver(record({ value: Buffer.from('bad') }));
    const closed = stage.close();
    await clock.advanceBy(1_000);
    await closed;
    expect([bus.acknowledged, stage.inFlight()]).toEqual([[], 0]);
  });
});

it('a decoder that throws makes a dead letter of its record', async () => {
  const { bus, codec, taken, running } = await start();
  await running;
  codec.decode = () => {
    throw new RangeError('odd');
  };
  bus.deliver(record());
  expect(produced(bus)).toEqual(['dlq full, no value, POISON: the decoder failed: odd', 'result']);
  expect(taken).toEqual([]);
});

describe('a record of an unknown schema', () => {
  it('waits for the registry as long as it takes, warns once, and is then handled', async () => {
    const { bus, clock, telemetry, taken, registry, running } = await start();
    await running;
    for (let n = 0; n < 20; n += 1) registry.push(() => Promise.reject(UNAVAILABLE));
    bus.deliver(
      record({ value: Buffer.from('schema') }),
      record({ offset: 1, value: Buffer.from('schema') }),
    );
    await clock.advanceBy(4_000);
    expect([taken.length, produced(bus)]).toEqual([0, []]);
    await clock.advanceBy(2_000);
    expect(taken.map(({ record: { offset } }) => offset)).toEqual([0, 1]);
    expect(telemetry.logs.filter(({ message }) => message.startsWith('schema look-up failed'))).toHaveLength(
      1,
    );
  });

  it('charges the wait as time since it was received', async () => {
    const { bus, clock, taken, registry, running } = await start();
    await running;
    registry.push(() => Promise.reject(UNAVAILABLE));
    await clock.advanceBy(100);
    bus.deliver(record({ value: Buffer.from('schema') }));
    await clock.advanceBy(1_000);
    expect(taken[0]?.receivedAtMs).toBe(100);
  });

  it.each(['revoked', 'lost'])(
    'is given up when its partition is %s: nothing waits for it, and it is not handled later',
    async (how) => {
      const { bus, clock, taken, registry, running } = await start();
      const stage = await running;
      for (let n = 0; n < 3; n += 1) registry.push(() => Promise.reject(UNAVAILABLE));
      bus.deliver(record({ value: Buffer.from('schema') }));
      await clock.advanceBy(600);
      const where = { topic: 'in', partition: 0 };
      let released = false;
      if (how === 'lost') bus.lose(where);
      else
        bus.revoke(where).then(() => {
          released = true;
        });
      await settled();
      expect([released, stage.inFlight()]).toEqual([how === 'revoked', 0]);
      await clock.advanceBy(10_000);
      expect([taken, produced(bus), bus.acknowledged]).toEqual([[], [], []]);
    },
  );
});

describe('an output that is refused', () => {
  it('for its size makes a dead letter of the record', async () => {
    const { bus, taken, running } = await start();
    await running;
    bus.deliver(record());
    taken[0]?.finish([output('a')]);
    bus.producing[0]?.refuse(new MillraceError('TOO_LARGE', 'far too large'));
    await settled();
    expect(produced(bus)).toEqual(['a', 'dlq full, ok, TOO_LARGE: far too large', 'result']);
  });

  it('as a dead letter that is too large, is sent as a digest, without what was stored already', async () => {
    const { bus, running } = await start();
    await running;
    bus.deliver(record({ value: Buffer.from('bad') }));
    bus.producing[1]?.store();
    bus.producing[0]?.refuse(new MillraceError('TOO_LARGE', 'far too large'));
    await settled();
    expect(produced(bus)).toEqual([
      'dlq full, no value, MALFORMED: it is bad',
      'result',
      'dlq hash, no value, MALFORMED: it is bad',
    ]);
    expect(bus.acknowledged).toEqual([]);
    bus.producing[2]?.store();
    await settled();
    expect(bus.acknowledged).toHaveLength(1);
  });

  it('for another reason is sent again until it is stored, and only then is the record acknowledged', async () => {
    const { bus, clock, taken, running } = await start();
    await running;
    bus.deliver(record());
    taken[0]?.finish([output('a'), output('b')]);
    bus.producing[0]?.store();
    bus.producing[1]?.refuse(new MillraceError('BUS_UNAVAILABLE', 'no such topic'));
    await clock.advanceBy(600);
    expect(produced(bus)).toEqual(['a', 'b', 'b']);
    expect(bus.acknowledged).toEqual([]);
    bus.producing[2]?.store();
    await settled();
    expect(bus.acknowledged).toHaveLength(1);
  });

  it('after the stage was closed leaves the record to the next owner', async () => {
    const { bus, clock, taken, running } = await start();
    const stage = await running;
    bus.assign({ topic: 'in', partition: 0 });
    bus.deliver(record());
    taken[0]?.finish([output('a')]);
    const closed = stage.close();
    bus.producing[0]?.refuse(new MillraceError('BUS_UNAVAILABLE', 'the bus is closed'));
    await closed;
    await clock.advanceBy(5_000);
    expect([produced(bus), bus.acknowledged, stage.inFlight()]).toEqual([['a'], [], 0]);
  });
});

describe('partitions that go away', () => {
  it('are let go when what was taken of them, and of them only, has ended', async () => {
    const abandoned: number[] = [];
    const { bus, taken, running } = await start({
      abandon: (gone) => {
        for (const delivery of taken) if (gone(delivery.record)) abandoned.push(delivery.record.offset);
      },
    });
    await running;
    bus.deliver(record({ offset: 1 }), record({ offset: 2 }));
    bus.deliver(record({ partition: 1, offset: 3 }));
    let released = false;
    const releasing = bus.revoke({ topic: 'in', partition: 0 }).then(() => {
      released = true;
    });
    expect(abandoned).toEqual([1, 2]);
    taken[0]?.abandon();
    await settled();
    expect(released).toBe(false);
    taken[1]?.finish([output('a')]);
    await settled();
    expect(released).toBe(false);
    bus.producing[0]?.store();
    await releasing;
    expect(bus.acknowledged.map(({ offset }) => offset)).toEqual([2]);
  });

  it('by loss are told to the stage at once', async () => {
    const lost: boolean[] = [];
    const { bus, running } = await start({
      abandon: (gone) => lost.push(gone(record()), gone(record({ partition: 1 }))),
    });
    await running;
    bus.lose({ topic: 'in', partition: 1 });
    expect(lost).toEqual([false, true]);
  });

  it('that had nothing in work are let go at once', async () => {
    const { bus, running } = await start();
    await running;
    bus.deliver(record({ partition: 1 }));
    await bus.revoke({ topic: 'in', partition: 0 });
  });
});

describe('time in the topic', () => {
  it('of a backlog that was there at the start is charged against its newest record', async () => {
    const { bus, clock, taken, running } = await start();
    await running;
    await clock.advanceBy(10_000);
    bus.deliver(record({ timestampMs: 4_000 }), record({ offset: 1, timestampMs: 9_000 }));
    expect(taken.map(({ inTopicMs }) => Math.round(inTopicMs))).toEqual([5_000, 0]);
  });

  it('is measured per record, with when it was received', async () => {
    const { bus, clock, taken, running } = await start();
    await running;
    bus.deliver(record({ timestampMs: 1_000 }));
    await clock.advanceBy(70);
    bus.deliver(record({ offset: 1, timestampMs: 1_020 }));
    expect(taken.map(({ receivedAtMs, inTopicMs }) => [receivedAtMs, Math.round(inTopicMs)])).toEqual([
      [0, 0],
      [70, 50],
    ]);
  });
});

it('an error of the bus is logged, and changes nothing', async () => {
  const { bus, telemetry, running } = await start();
  await running;
  bus.fail(new Error('it went away'));
  expect(telemetry.logs.at(-1)).toMatchObject({ level: 'warn', fields: { error: 'Error: it went away' } });
});
