import { describe, expect, it } from 'vitest';
import { memorySchemaRegistry } from '../../../../src/adapters/memory/schema-registry.ts';
import { createCodecs } from '../../../../src/contracts/codec.ts';
import { type ControlEvent, makeControlEvent } from '../../../../src/contracts/records.ts';
import { SCHEMAS } from '../../../../src/contracts/schemas.ts';
import { recordTopics } from '../../../../src/contracts/topic-specs.ts';
import type { InboundRecord } from '../../../../src/ports/message-bus.ts';
import { ControlLog } from '../../../../src/stages/policy-controller/control-log.ts';
import { handClock, listBus } from '../../../fuzz/control-log.ts';
import { POOLS, topics } from '../records.fixture.ts';
import { publish } from './controller.fixture.ts';

const EVENTS = topics.fixed('control-events');
const BROKER_MS = 7_000;
const forever = new AbortController().signal;
const registry = memorySchemaRegistry();

async function openCodecs(schemas: { ControlEvent?: string } = {}) {
  const codecs = createCodecs({ registry, clock: handClock(0), schemas });
  await codecs.register(recordTopics({ topics, tenants: [], pools: POOLS }));
  return codecs;
}

const codecs = await openCodecs();

let events = 0;

/** An event of that term, which refuses the command at an offset; or one that this version does not know. */
function told(term: number, commandOffset = -1, evidence?: string): ControlEvent {
  events += 1;
  const refused = { type: 'command-refused', commandId: '', scope: 'x', actor: 'a', reason: `of ${term}` };
  return makeControlEvent({
    eventId: `e-${events}`,
    scope: 'x',
    type: 'command-refused',
    term,
    epoch: 0,
    actor: 'a',
    commandId: '',
    commandOffset,
    accepted: false,
    evidence: evidence ?? JSON.stringify(refused),
    occurredAt: 0,
  });
}

const takes = (term: number): ControlEvent =>
  told(term, -1, JSON.stringify({ type: 'leadership-taken', term }));

/** A log, and what somebody else appends around the record that takes the term. */
function room(options: { before?: ControlEvent[]; after?: ControlEvent[]; again?: boolean } = {}) {
  const bus = listBus(handClock(BROKER_MS));
  const log = new ControlLog({ bus, codecs, topics });
  const rival = new ControlLog({ bus, codecs, topics });
  const { produce } = bus;
  let isOurs = false;
  bus.produce = async (record) => {
    if (!isOurs) return produce(record);
    isOurs = false;
    for (const event of options.before ?? []) await rival.append(event);
    await produce(record);
    if (options.again === true) await produce(record);
    for (const event of options.after ?? []) await rival.append(event);
  };
  return {
    bus,
    append: async (...all: ControlEvent[]) => {
      for (const event of all) await log.append(event);
    },
    fence: (over: AbortSignal = forever) => {
      isOurs = true;
      return log.fence(takes, over);
    },
    log,
  };
}

const reasons = (entries: readonly { event: { type: string } }[]): string[] =>
  entries.map(({ event }) => ('reason' in event ? String(event.reason) : event.type));

describe('a controller that takes the lead', () => {
  it('takes the term above every term, and has the log up to there', async () => {
    const { append, fence } = room();
    await append(takes(1), told(1, 4), takes(2), told(2, 5));
    const { term, entries } = await fence();
    expect(term).toBe(3);
    expect(reasons(entries)).toEqual(['leadership-taken', 'of 1', 'leadership-taken', 'of 2']);
    expect(entries.map(({ commandOffset }) => commandOffset)).toEqual([-1, 4, -1, 5]);
  });

  it("is told the broker's time of its record", async () => {
    expect(await room().fence()).toMatchObject({ term: 1, appendedMs: BROKER_MS });
  });

  it('counts the term of an event that it does not know, and passes over the event', async () => {
    const { append, fence } = room();
    await append(told(1), told(9, 3, '{"type":"of a later version"}'));
    expect(await fence()).toMatchObject({ term: 10, entries: [{ term: 1 }] });
  });

  it('counts the term of an event that was written with a newer schema', async () => {
    const newer = JSON.parse(SCHEMAS.ControlEvent) as { fields: unknown[] };
    newer.fields.push({ name: 'later', type: 'string', default: '' });
    const writer = await openCodecs({ ControlEvent: JSON.stringify(newer) });
    const { bus, fence } = room();
    const value = writer.for('ControlEvent').encode({ ...told(6), later: 'x' } as never);
    await bus.produce({ topic: EVENTS, partition: 0, key: null, value });
    expect((await fence()).term).toBe(7);
  });

  it.each([
    ['the same term', [takes(3)]],
    ['a higher term', [takes(8)]],
  ])('is fenced where another one took %s before it', async (_, before) => {
    const { append, fence } = room({ before });
    await append(takes(2));
    await expect(fence()).rejects.toMatchObject({ code: 'STALE_EPOCH' });
  });

  it('has what the leader before still wrote meanwhile', async () => {
    const { append, fence } = room({ before: [told(2, 7)] });
    await append(takes(2));
    expect(reasons((await fence()).entries)).toEqual(['leadership-taken', 'of 2']);
  });

  it('has nothing of a leader that was replaced when it wrote', async () => {
    const { append, fence } = room({ before: [told(1, 8)] });
    await append(takes(1), told(1, 6), takes(2), told(1, 7), told(2, 7));
    expect(reasons((await fence()).entries)).toEqual([
      'leadership-taken',
      'of 1',
      'leadership-taken',
      'of 2',
    ]);
  });

  it('is told nothing of what comes after it: the next leader finds that out', async () => {
    const { append, fence } = room({ after: [told(1), takes(5)] });
    await append(takes(1));
    const { term, entries } = await fence();
    expect([term, reasons(entries)]).toEqual([2, ['leadership-taken']]);
  });

  it('is not fenced by its own record, which a producer that tried again appended twice', async () => {
    const { append, fence } = room({ again: true });
    await append(takes(1));
    expect((await fence()).term).toBe(2);
  });

  it('has what another producer appended twice once', async () => {
    const { append, fence } = room();
    const [taken, refused] = [takes(1), told(1, 4)];
    await append(taken, refused, refused, taken, told(1, 5), refused);
    expect((await fence()).entries.map(({ commandOffset }) => commandOffset)).toEqual([-1, 4, 5]);
  });

  it('takes a term above the one in the store, where the log has lost its beginning, and says that it has', async () => {
    const { append, bus, log } = room();
    await append(takes(1), takes(2));
    expect(await log.fence(takes, forever)).toMatchObject({ term: 3, firstOffset: 0 });
    (bus.of(EVENTS) as InboundRecord[]).splice(0, 2);
    expect(await log.fence(takes, forever, 7)).toMatchObject({ term: 8, firstOffset: 2 });
  });

  it('leaves no trace where the lead was over before', async () => {
    const { append, fence, bus } = room();
    await append(takes(1));
    const over = AbortSignal.abort(new Error('the partition went away'));
    await expect(fence(over)).rejects.toThrow('the partition went away');
    expect(bus.of(EVENTS)).toHaveLength(1);
  });

  it('waits for its record no longer than it leads', async () => {
    const { append, fence, bus } = room();
    await append(takes(1));
    const over = new AbortController();
    bus.produce = async () => over.abort(new Error('the partition went away'));
    await expect(fence(over.signal)).rejects.toThrow('the partition went away');
  });
});

describe('the commands of the log', () => {
  it('are known by their offsets and times; what cannot be read and was not accepted is passed over', async () => {
    const clock = handClock(1_000);
    const bus = listBus(clock);
    const topic = topics.fixed('control');
    const values = [publish(1), undefined, publish(2)].map((command) =>
      command === undefined ? Buffer.from('?') : codecs.for('ControlCommand').encode(command),
    );
    for (const value of values) {
      await bus.produce({ topic, partition: 0, key: null, value });
      clock.nowMs += 500;
    }
    const { commands } = await new ControlLog({ bus, codecs, topics }).fence(takes, forever);
    expect(
      [...commands].map(([offset, { command, appendedMs }]) => [offset, command.commandId, appendedMs]),
    ).toEqual([
      [0, 'publish-1', 1_000],
      [2, 'publish-2', 2_000],
    ]);
  });
});

describe('a registry that gives ids anew', () => {
  /** Codecs of a registry in which what the log's ids stand for is another schema, or none. */
  async function renamed(ids: number) {
    const other = memorySchemaRegistry();
    for (let n = 0; n < ids; n += 1)
      await other.register(`other-${n}-value`, `{"type":"record","name":"O${n}","fields":[]}`, 'BACKWARD');
    const others = createCodecs({ registry: other, clock: handClock(0) });
    await others.register(recordTopics({ topics, tenants: [], pools: POOLS }));
    return others;
  }

  /** A log of before, as the versions of before wrote it (without headers) unless `headers` says otherwise. */
  async function logOf(values: readonly ['control' | 'control-events', Buffer][], headers = {}) {
    const bus = listBus(handClock(0));
    for (const [topic, value] of values)
      await bus.produce({ topic: topics.fixed(topic), partition: 0, key: null, value, headers });
    return bus;
  }

  const event = (of: ControlEvent) =>
    ['control-events', codecs.for('ControlEvent').encode(of)] as ['control-events', Buffer];
  const command = ['control', codecs.for('ControlCommand').encode(publish(1))] as ['control', Buffer];
  const accepted = { ...told(1, 0), type: 'policy-published', accepted: true };
  const foreign: [string, Buffer][] = [['control-events', Buffer.from('?')]];

  it.each([
    [3, 'stands for another schema'],
    [40, 'is given to somebody else'],
  ])(
    'keeps the log readable by the fingerprints of its schemas where the id moved by %d and %s',
    async (ids) => {
      const bus = await logOf([event(takes(4))], codecs.for('ControlEvent').headers);
      const log = new ControlLog({ bus, codecs: await renamed(ids), topics });
      expect(await log.fence(takes, forever)).toMatchObject({ term: 5, entries: [{ term: 4 }] });
    },
  );

  it.each([3, 40])('without fingerprints keeps a controller from the lead: moved by %d', async (ids) => {
    const bus = await logOf([event(takes(4)), event(told(4, 2))]);
    const log = new ControlLog({ bus, codecs: await renamed(ids), topics });
    await expect(log.fence(takes, forever)).rejects.toMatchObject({
      code: 'LOG_UNREADABLE',
      message: expect.stringContaining(
        `${EVENTS} has 2 records that this controller cannot read, the first at offset 0`,
      ),
    });
    expect(bus.of(EVENTS)).toHaveLength(2);
  });

  it('does so for a record that is cut short', async () => {
    const [topic, value] = event(takes(4));
    const bus = await logOf([[topic, value.subarray(0, -3)]]);
    await expect(new ControlLog({ bus, codecs, topics }).fence(takes, forever)).rejects.toMatchObject({
      code: 'LOG_UNREADABLE',
    });
  });

  it('does not for what no controller wrote', async () => {
    const bus = await logOf([event(takes(4)), ...(foreign as [['control-events', Buffer]])]);
    expect(await new ControlLog({ bus, codecs, topics }).fence(takes, forever)).toMatchObject({ term: 5 });
  });

  it('keeps a controller from the lead where a command that was accepted cannot be read, and takes no term', async () => {
    const bus = await logOf([['control', Buffer.from('?')], event(accepted)]);
    await expect(new ControlLog({ bus, codecs, topics }).fence(takes, forever)).rejects.toMatchObject({
      code: 'LOG_UNREADABLE',
      message: expect.stringContaining(`${topics.fixed('control')} has 1 records`),
    });
    expect(bus.of(EVENTS)).toHaveLength(1);
  });

  it.each([
    ['was refused', [event(told(1, 0))]],
    ['is not decided yet', []],
    ['was accepted only by a leader that was replaced', [event(takes(2)), event(accepted)]],
  ])('does not where one that cannot be read %s', async (_what, events) => {
    const bus = await logOf([['control', Buffer.from('?')], command, ...events]);
    const { commands } = await new ControlLog({ bus, codecs, topics }).fence(takes, forever);
    expect([...commands.keys()]).toEqual([1]);
  });
});
