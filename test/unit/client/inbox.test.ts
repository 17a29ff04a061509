import { describe, expect, it } from 'vitest';
import { Inbox } from '../../../src/client/inbox.ts';
import type { InboundRecord } from '../../../src/ports/message-bus.ts';
import { Watched } from '../alive.fixture.ts';

function record(offset: number, partition = 0): InboundRecord {
  return {
    topic: 't',
    partition,
    offset,
    timestampMs: 0,
    key: null,
    value: null,
    headers: {},
    assignment: 1,
  };
}

describe('an inbox', () => {
  it('hands records over in order, those pushed before and those awaited', async () => {
    const inbox = new Inbox();
    inbox.push([record(0), record(1)]);
    expect((await inbox.next())?.offset).toBe(0);
    expect((await inbox.next())?.offset).toBe(1);
    const waiting = inbox.next();
    inbox.push([record(2)]);
    expect((await waiting)?.offset).toBe(2);
  });

  it('keeps order over many records, through its own compaction', async () => {
    const inbox = new Inbox();
    const offsets = Array.from({ length: 5_000 }, (_, offset) => offset);
    inbox.push(offsets.slice(0, 3_000).map((offset) => record(offset)));
    const read: (number | undefined)[] = [];
    for (let n = 0; n < 2_500; n += 1) read.push((await inbox.next())?.offset);
    inbox.push(offsets.slice(3_000).map((offset) => record(offset)));
    for (let n = 2_500; n < 5_000; n += 1) read.push((await inbox.next())?.offset);
    expect(read).toEqual(offsets);
  });

  it('answers undefined after the end, to whoever waits and whoever asks, even where records are left', async () => {
    const inbox = new Inbox();
    const waiting = inbox.next();
    inbox.end();
    inbox.push([record(0)]);
    expect(await waiting).toBeUndefined();
    expect(await inbox.next()).toBeUndefined();
  });

  it('forgets the records of partitions that went to somebody else', async () => {
    const inbox = new Inbox();
    inbox.push([record(0, 0), record(0, 1), record(1, 0), record(1, 1)]);
    await inbox.next();
    inbox.discard([{ topic: 't', partition: 0 }]);
    expect(await inbox.next()).toMatchObject({ partition: 1, offset: 0 });
    expect(await inbox.next()).toMatchObject({ partition: 1, offset: 1 });
  });

  it('lets go of what was read, however much is left', async () => {
    const inbox = new Inbox();
    const watched = new Watched();
    inbox.push(Array.from({ length: 1_500 }, (_, offset) => watched.add(record(offset))));
    for (let n = 0; n < 700; n += 1) await inbox.next();
    expect(await watched.areAlive(800)).toBe(true);
    inbox.end();
  });
});
