import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TopicCatalog } from '../../../../src/adapters/kafka/topic-catalog.ts';

let topics: Map<string, readonly number[]>;
let failure: Error | undefined;
let requests: number;
let catalog: TopicCatalog;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  topics = new Map([['t', [1, 2, -1]]]);
  failure = undefined;
  requests = 0;
  catalog = new TopicCatalog({
    leaders: async (names) => {
      requests++;
      if (failure !== undefined) throw failure;
      return new Map(
        names.flatMap((name) => (topics.has(name) ? [[name, topics.get(name) ?? []] as const] : [])),
      );
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('TopicCatalog', () => {
  it('asks once for those who ask together, and again when the answer is some seconds old', async () => {
    const counts = await Promise.all([1, 2, 3].map(() => catalog.partitionCount('t')));
    expect(counts).toEqual([3, 3, 3]);
    expect(requests).toBe(1);
    topics.set('t', [1, 2, 1, 1]);
    expect(await catalog.partitionCount('t')).toBe(3);
    await vi.advanceTimersByTimeAsync(5_100);
    expect(await catalog.partitionCount('t')).toBe(4);
    expect(requests).toBe(2);
  });

  it('answers what it knew last while no broker answers', async () => {
    await catalog.partitionCount('t');
    failure = new Error('away');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await catalog.partitionCount('t')).toBe(3);
    await expect(catalog.partitionCount('other')).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
  });

  it('says that a topic does not exist, at once where it is only asked for its partitions', async () => {
    await expect(catalog.partitionCount('missing')).rejects.toThrow(
      /does not exist \(got "missing"\)\. .*`millrace topics apply`.*MILLRACE_PREFIX/,
    );
  });

  it('does not believe a broker that has only just started and does not know a topic that was there', async () => {
    await catalog.partitionCount('t');
    topics.clear();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await catalog.partitionCount('t')).toBe(3);
    expect(catalog.leaderOf('t', 1)).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    await expect(catalog.partitionCount('t')).rejects.toThrow(/does not exist/);
    expect(catalog.leaderOf('t', 1)).toBeUndefined();
  });

  it('waits for a leader as long as it takes, and for a topic some seconds', async () => {
    let leader: number | undefined;
    const found = catalog
      .findLeader('t', 2, () => true)
      .then((each) => {
        leader = each;
      });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(leader).toBeUndefined();
    topics.set('t', [1, 2, 3]);
    await vi.advanceTimersByTimeAsync(2_000);
    await found;
    expect(leader).toBe(3);

    const missing = expect(catalog.findLeader('missing', 0, () => true)).rejects.toThrow(/does not exist/);
    const beyond = expect(catalog.findLeader('t', 3, () => true)).rejects.toThrow(
      /no such partition.*3; allowed: 0 … 2/,
    );
    await vi.advanceTimersByTimeAsync(8_000);
    await Promise.all([missing, beyond]);
  });

  it('gives up waiting when nobody wants the answer any more', async () => {
    let isWanted = true;
    const waiting = expect(catalog.findLeader('t', 2, () => isWanted)).rejects.toMatchObject({
      code: 'BUS_UNAVAILABLE',
    });
    await vi.advanceTimersByTimeAsync(1_000);
    isWanted = false;
    await vi.advanceTimersByTimeAsync(2_000);
    await waiting;
  });
});
