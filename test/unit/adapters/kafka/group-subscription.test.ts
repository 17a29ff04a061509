import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KafkaClient } from '../../../../src/adapters/kafka/client.ts';
import { GroupSubscription } from '../../../../src/adapters/kafka/group-subscription.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type {
  InboundRecord,
  SubscribeOptions,
  Subscriber,
  TopicPartition,
} from '../../../../src/ports/message-bus.ts';
import { FakeClient } from './fake-session.ts';

const STALE_MS = 45_000;

let client: FakeClient;
let subscription: GroupSubscription;
let delivered: InboundRecord[];
let events: string[];
let subscriber: Subscriber;
let restarts: number;

const names = (partitions: readonly TopicPartition[]) =>
  partitions.map(({ partition }) => partition).join(',');

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  client = new FakeClient();
  delivered = [];
  events = [];
  restarts = 0;
  subscriber = {
    onRecords: (records) => delivered.push(...records),
    onAssigned: (partitions) => events.push(`assigned ${names(partitions)}`),
    onRevoked: async (partitions) => void events.push(`revoked ${names(partitions)}`),
    onLost: (partitions) => events.push(`lost ${names(partitions)}`),
    onError: (error) => events.push(`error ${error instanceof Error ? error.message : error}`),
  };
});
afterEach(async () => {
  const closed = subscription.close();
  await vi.advanceTimersByTimeAsync(60_000);
  await closed;
  vi.useRealTimers();
});

async function subscribe(options: Partial<SubscribeOptions> = {}): Promise<void> {
  let assignments = 0;
  subscription = new GroupSubscription(
    {
      client: client as unknown as KafkaClient,
      logger: silentTelemetry().logger,
      drainTimeoutMs: 2_000,
      sessionTimeoutMs: 6_000,
      staleMs: STALE_MS,
      outOfRange: 'earliest',
      nextAssignment: () => ++assignments,
      onRestart: () => restarts++,
      onOutOfRange: () => undefined,
      onUnreadable: () => undefined,
      onClosed: () => undefined,
    },
    { group: 'group', topics: ['topic'], startAt: 'earliest', ...options },
    subscriber,
  );
  await subscription.start();
}

const flush = () => vi.advanceTimersByTimeAsync(200);
const acknowledge = (partition: number, ...offsets: number[]) => {
  for (const record of delivered) {
    if (record.partition === partition && offsets.includes(record.offset)) subscription.acknowledge(record);
  }
};

describe('a rebalance', () => {
  it('goes on with what stays, where it was and under the same assignment', async () => {
    client.firstAssignment = [0, 1];
    await subscribe();
    const assignment = client.session.fetch(0, 5);
    client.session.positions.clear();
    client.session.join([0, 1, 2], 2);
    await flush();
    expect(client.session.positions.get(0)).toBe(5);
    expect(client.session.fetch(0, 1)).toBe(assignment);
    acknowledge(0, 0, 1);
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: 2 });
    expect(events).toEqual(['assigned 0,1', 'assigned 2']);
  });

  it('drains and commits what goes, and only then asks for the round that gives it to somebody else', async () => {
    client.firstAssignment = [0, 1];
    const drained = Promise.withResolvers<void>();
    subscriber.onRevoked = (partitions) => {
      events.push(`revoked ${names(partitions)}`);
      return drained.promise;
    };
    await subscribe();
    client.session.fetch(1, 5);
    client.session.join([0], 2);
    await flush();
    expect(subscription.assigned()).toEqual([{ topic: 'topic', partition: 0 }]);
    expect(client.session.rejoins).toBe(0);
    expect(subscription.claims().owned).toContainEqual({ topic: 'topic', partition: 1 });
    acknowledge(1, 0, 1, 2);
    drained.resolve();
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 1: 3 });
    expect(client.session.rejoins).toBe(1);
    expect(subscription.claims().owned).toEqual([{ topic: 'topic', partition: 0 }]);
    expect(events).toEqual(['assigned 0,1', 'revoked 1']);
  });

  it('delivers nothing more of a partition that drains, though it was fetched', async () => {
    client.firstAssignment = [0];
    subscriber.onRevoked = () => new Promise(() => undefined);
    await subscribe({ unacknowledgedMax: 3 });
    client.session.fetch(0, 10);
    expect(delivered).toHaveLength(3);
    client.session.join([], 2);
    acknowledge(0, 0, 1, 2);
    await flush();
    client.session.paused.clear();
    expect(client.session.fetch(0, 5)).toBeUndefined();
    expect(delivered).toHaveLength(3);
  });

  it('lets go after the drain time-out, whatever the subscriber does', async () => {
    client.firstAssignment = [0];
    subscriber.onRevoked = () => new Promise(() => undefined);
    await subscribe();
    client.session.fetch(0, 5);
    acknowledge(0, 0);
    client.session.join([], 2);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(client.session.rejoins).toBe(1);
    expect(client.session.lastCommitted()).toEqual({ 0: 1 });
  });

  it('ignores acknowledgements that come after the partition went', async () => {
    client.firstAssignment = [0];
    await subscribe();
    client.session.fetch(0, 5);
    client.session.join([], 2);
    await flush();
    const { length } = client.session.commits;
    acknowledge(0, 0, 1, 2);
    await flush();
    expect(client.session.commits).toHaveLength(length);
  });

  it('starts a partition anew that comes back while it drains, once that is done', async () => {
    client.firstAssignment = [0];
    const drained = Promise.withResolvers<void>();
    subscriber.onRevoked = () => drained.promise;
    await subscribe();
    const before = client.session.fetch(0, 5);
    client.session.join([], 2);
    client.session.join([0], 3);
    await flush();
    expect(client.session.fetch(0, 5)).toBeUndefined();
    acknowledge(0, 0, 1);
    client.committedOffsets.set(0, 2);
    drained.resolve();
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: 2 });
    expect(client.session.positions.get(0)).toBe(2);
    expect(client.session.fetch(0, 1)).not.toBe(before);
    acknowledge(0, 3);
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: 2 });
  });

  it('commits nothing for partitions that the group gave to others while this member was away', async () => {
    client.firstAssignment = [0, 1];
    await subscribe();
    client.session.fetch(0, 5);
    acknowledge(0, 0, 1, 2);
    client.session.join([1], 7, 'another member id');
    await flush();
    acknowledge(0, 3);
    await flush();
    expect(client.session.commits.flat().filter(({ partition }) => partition === 0)).toEqual([]);
    expect(events).toEqual(['assigned 0,1', 'lost 0,1', 'assigned 1']);
  });

  it('does not deliver what was fetched before the group agreed anew, if it is not what comes next', async () => {
    client.firstAssignment = [0];
    await subscribe();
    client.session.fetch(0, 5);
    expect(client.session.fetch(0, 5, 0)).toBeUndefined();
    expect(client.session.fetch(0, 5, 7)).toBeUndefined();
    expect(client.session.fetch(0, 5, 5)).toBeDefined();
    expect(delivered.map(({ offset }) => offset)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

describe('commits', () => {
  it('carry what all partitions gained meanwhile, in one request', async () => {
    client.firstAssignment = [0, 1, 2];
    await subscribe();
    for (const partition of [0, 1]) client.session.fetch(partition, 50);
    for (let offset = 0; offset < 50; offset++)
      for (const partition of [0, 1]) acknowledge(partition, offset);
    await flush();
    expect(client.session.commits).toEqual([
      [
        { topic: 'topic', partition: 0, offset: 50 },
        { topic: 'topic', partition: 1, offset: 50 },
      ],
    ]);
  });

  it('are made again when the broker refused them', async () => {
    client.firstAssignment = [0];
    await subscribe();
    client.session.fetch(0, 2);
    let refusals = 3;
    client.session.onCommit = async () => {
      if (refusals-- > 0) throw new Error('coordinator is loading');
    };
    acknowledge(0, 0, 1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(client.session.commits).toHaveLength(4);
  });

  it('pin a start at the latest record, which would be another place after a restart', async () => {
    client.firstAssignment = [0];
    await subscribe({ startAt: 'latest' });
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: 100 });
  });

  it('leave a start at the earliest record alone', async () => {
    client.firstAssignment = [0];
    await subscribe();
    await flush();
    expect(client.session.commits).toEqual([]);
  });
});

describe('an offset that is not in the log', () => {
  it.each([
    { what: 'deleted before it was read', committed: 5, marks: { low: 40, high: 100 }, start: 40 },
    { what: 'of a log that is gone', committed: 500, marks: { low: 0, high: 100 }, start: 0 },
  ])('is answered by the policy and reported: $what', async ({ committed, marks, start }) => {
    client.firstAssignment = [0];
    client.committedOffsets.set(0, committed);
    client.marks = [{ partition: 0, ...marks }];
    await subscribe();
    expect(client.session.positions.get(0)).toBe(start);
    expect(events).toEqual([expect.stringMatching(/not in the log/), 'assigned 0']);
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: start });
  });

  it('starts a new assignment when it happens while reading', async () => {
    client.firstAssignment = [0];
    await subscribe();
    const before = client.session.fetch(0, 5);
    client.marks = [{ partition: 0, low: 60, high: 100 }];
    client.session.pause({ topic: 'topic', partition: 0 });
    client.session.listener.onOutOfRange({ topic: 'topic', partition: 0 });
    await flush();
    expect(client.session.positions.get(0)).toBe(60);
    expect(client.session.fetch(0, 1)).not.toBe(before);
    expect(events.slice(1)).toEqual([expect.stringMatching(/offset 5 of topic\/0/), 'lost 0', 'assigned 0']);
    acknowledge(0, 0, 1);
    await flush();
    expect(client.session.lastCommitted()).toEqual({ 0: 60 });
  });

  it('changes nothing when the log has it after all', async () => {
    client.firstAssignment = [0];
    await subscribe();
    const before = client.session.fetch(0, 5);
    client.session.pause({ topic: 'topic', partition: 0 });
    client.session.listener.onOutOfRange({ topic: 'topic', partition: 0 });
    await flush();
    expect(client.session.fetch(0, 1)).toBe(before);
    expect(events).toEqual(['assigned 0']);
  });
});

describe('a session that ends', () => {
  it('loses its partitions, and another one is opened, again and again', async () => {
    client.firstAssignment = [0];
    await subscribe();
    client.session.fetch(0, 5);
    client.failures = Array.from({ length: 5 }, (_, i) => new Error(`failure ${i}`));
    client.session.crash();
    expect(subscription.assigned()).toEqual([]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(client.sessions).toHaveLength(2);
    expect(restarts).toBe(6);
    expect(events).toEqual([
      'assigned 0',
      'lost 0',
      'error crash',
      ...[0, 1, 2, 3, 4].map((i) => `error failure ${i}`),
      'assigned 0',
    ]);
    expect(client.session.positions.get(0)).toBe(0);
    acknowledge(0, 0, 1, 2);
    await flush();
    expect(client.session.commits).toEqual([]);
  });

  it('is given up when it falls silent', async () => {
    client.firstAssignment = [0];
    await subscribe();
    const [silent] = client.sessions;
    client.session.contactMs = STALE_MS + 1;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(silent?.isClosed).toBe(true);
    expect(client.sessions).toHaveLength(2);
    expect(subscription.sinceLastFetchMs()).toBe(0);
  });

  it('counts the time since its last contact on, until the next session has one', async () => {
    await subscribe();
    client.session.contactMs = 3_000;
    client.failures = Array.from({ length: 50 }, () => new Error('away'));
    client.session.crash();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(subscription.sinceLastFetchMs()).toBe(13_000);
  });
});

describe('back-pressure', () => {
  it('pauses a partition on a stock of records, and resumes it before the stock is used up', async () => {
    client.firstAssignment = [0, 1];
    await subscribe({ unacknowledgedMax: 10 });
    client.session.fetch(0, 50);
    expect([...client.session.paused]).toEqual([0]);
    for (let offset = 0; offset < 50; offset++) {
      acknowledge(0, offset);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(client.session.paused.size).toBe(0);
    expect(delivered).toHaveLength(50);
  });
});

describe('close', () => {
  it('drains, commits, leaves, and nothing is called afterwards', async () => {
    client.firstAssignment = [0, 1];
    subscriber.onRevoked = async (partitions) => {
      events.push(`revoked ${names(partitions)}`);
      acknowledge(0, 0, 1);
    };
    await subscribe();
    client.session.fetch(0, 5);
    await subscription.close();
    expect(client.session.lastCommitted()).toEqual({ 0: 2 });
    expect(client.session.isClosed).toBe(true);
    expect(subscription.assigned()).toEqual([]);
    client.session.fetch(0, 5, 5);
    client.session.join([0, 1], 2);
    client.session.crash();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(delivered).toHaveLength(5);
    expect(events).toEqual(['assigned 0,1', 'revoked 0,1']);
  });

  it('ends though the client never answers', async () => {
    client.firstAssignment = [0];
    await subscribe();
    client.session.fetch(0, 1);
    acknowledge(0, 0);
    client.session.onCommit = () => new Promise(() => undefined);
    client.session.close = () => new Promise(() => undefined);
    const closed = subscription.close();
    await vi.advanceTimersByTimeAsync(15_000);
    await closed;
  });

  it('ends while no session can be opened', async () => {
    await subscribe();
    client.failures = Array.from({ length: 1_000 }, () => new Error('away'));
    client.session.crash();
    await vi.advanceTimersByTimeAsync(2_000);
    const closed = subscription.close();
    await vi.advanceTimersByTimeAsync(10_000);
    await closed;
    expect(client.sessions).toHaveLength(1);
  });
});
