import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KafkaClient } from '../../../../src/adapters/kafka/client.ts';
import { PartitionReader } from '../../../../src/adapters/kafka/partition-reader.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type { BroadcastOptions } from '../../../../src/ports/message-bus.ts';
import { FakeClient } from './fake-session.ts';

let client: FakeClient;
let reader: PartitionReader;
let offsets: string[];
let outOfRange: number;
let unreadable: number[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  client = new FakeClient();
  client.firstAssignment = [0, 1];
  client.marks = [
    { partition: 0, low: 5, high: 10 },
    { partition: 1, low: 0, high: 0 },
  ];
  offsets = [];
  outOfRange = 0;
  unreadable = [];
});
afterEach(async () => {
  const closed = reader.close();
  await vi.advanceTimersByTimeAsync(30_000);
  await closed;
  vi.useRealTimers();
});

async function read(options: Partial<BroadcastOptions> = {}): Promise<void> {
  let groups = 0;
  reader = new PartitionReader(
    {
      client: client as unknown as KafkaClient,
      logger: silentTelemetry().logger,
      newGroup: () => `reader${groups++}`,
      sessionTimeoutMs: 6_000,
      staleMs: 45_000,
      outOfRange: 'earliest',
      assignment: 7,
      onRestart: () => undefined,
      onOutOfRange: () => outOfRange++,
      onUnreadable: (count) => unreadable.push(count),
      onClosed: () => undefined,
    },
    { topics: ['topic'], startAt: 'earliest', ...options },
    (records) => offsets.push(...records.map(({ partition, offset }) => `${partition}/${offset}`)),
  );
  await reader.start();
}

async function isCaughtUp(): Promise<boolean> {
  let isSo = false;
  reader.caughtUp.then(
    () => {
      isSo = true;
    },
    () => undefined,
  );
  await vi.advanceTimersByTimeAsync(1);
  return isSo;
}

describe('PartitionReader', () => {
  it('has caught up once everything that lay there was delivered, whatever is appended meanwhile', async () => {
    await read();
    expect(await isCaughtUp()).toBe(false);
    client.session.fetch(1, 3);
    client.session.fetch(0, 4);
    expect(await isCaughtUp()).toBe(false);
    client.session.fetch(0, 4);
    expect(await isCaughtUp()).toBe(true);
    expect(offsets).toEqual([
      '1/0',
      '1/1',
      '1/2',
      ...[5, 6, 7, 8, 9, 10, 11, 12].map((offset) => `0/${offset}`),
    ]);
  });

  it('has caught up by markers and aborted records too, of which it is told no record', async () => {
    await read();
    client.session.fetch(0, 3);
    client.session.listener.onFetched({ topic: 'topic', partition: 0 }, [], 10);
    expect(await isCaughtUp()).toBe(true);
  });

  it('goes on in a new session exactly where the last one stopped, under a new group', async () => {
    await read({ startAt: 'latest' });
    client.session.fetch(0, 2);
    client.session.crash();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(client.sessions).toHaveLength(2);
    expect(client.options.map(({ group }) => group)).toEqual(['reader0', 'reader1']);
    expect(client.session.positions.get(0)).toBe(12);
    expect(client.session.fetch(0, 1, 10)).toBeUndefined();
    client.session.fetch(0, 1);
    expect(offsets).toEqual(['0/10', '0/11', '0/12']);
  });

  it('stays paused in a new session, and goes on where it stopped', async () => {
    await read({ startAt: 'latest' });
    client.session.fetch(0, 2);
    reader.pause();
    expect([0, 1].map((partition) => client.session.paused.has(partition))).toEqual([true, true]);
    client.session.crash();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(client.session.paused.has(0)).toBe(true);
    expect(client.session.positions.get(0)).toBe(12);
    reader.resume();
    expect(client.session.paused.has(0)).toBe(false);
  });

  it('reads a partition that the topic only just got from its first record on', async () => {
    await read({ startAt: 'latest' });
    client.session.join([0, 1, 2], 2);
    expect(client.session.positions.get(2)).toBe(0);
    expect(client.session.positions.get(0)).toBe(10);
  });

  it('goes on at the first record kept where its position was deleted', async () => {
    await read();
    client.session.fetch(0, 2);
    client.marks = [{ partition: 0, low: 9, high: 12 }];
    client.session.listener.onOutOfRange({ topic: 'topic', partition: 0 });
    await vi.advanceTimersByTimeAsync(100);
    expect(client.session.positions.get(0)).toBe(9);
    expect(outOfRange).toBe(1);
    client.session.fetch(0, 3);
    expect(await isCaughtUp()).toBe(true);
  });

  it('has caught up with a log that is gone', async () => {
    await read();
    client.session.fetch(0, 2);
    client.marks = [{ partition: 0, low: 0, high: 3 }];
    client.session.listener.onOutOfRange({ topic: 'topic', partition: 0 });
    await vi.advanceTimersByTimeAsync(100);
    expect(client.session.positions.get(0)).toBe(0);
    expect(await isCaughtUp()).toBe(true);
  });

  it('passes a batch that is refused, counts it, and is not given it', async () => {
    await read();
    client.session.fetch(0, 2);
    client.session.fetchRefused(0, 3);
    expect(await isCaughtUp()).toBe(true);
    client.session.fetch(0, 1);
    expect(offsets).toEqual(['0/5', '0/6', '0/10']);
    expect(unreadable).toEqual([3]);
  });

  it('is given the records of a refused batch where it asks for them', async () => {
    await read({ unreadable: 'delivered' });
    client.session.fetchRefused(0, 3);
    expect(offsets).toEqual(['0/5', '0/6', '0/7']);
    expect(unreadable).toEqual([3]);
  });

  it('tells whoever waits for it when it is closed before', async () => {
    await read();
    const waiting = expect(reader.caughtUp).rejects.toMatchObject({ code: 'CLOSED' });
    await reader.close();
    await waiting;
    client.session.fetch(0, 5);
    expect(offsets).toEqual([]);
  });

  it('looks for where to start until the broker answers', async () => {
    let failures = 3;
    const { watermarks } = client;
    client.watermarks = async () => {
      if (failures-- > 0) throw new Error('away');
      return watermarks();
    };
    const reading = read();
    await vi.advanceTimersByTimeAsync(5_000);
    await reading;
    expect(client.session.positions.get(0)).toBe(5);
  });
});
