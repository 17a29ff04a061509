import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MessageBus, SubscribeOptions } from '../../src/ports/message-bus.ts';
import {
  type BusFactory,
  createTopic,
  eventuallyCommitted,
  later,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

export function groupConformance(create: CreateFactory): void {
  let run: BusFactory;
  let admin: MessageBus;
  let group: string;

  beforeEach(async () => {
    run = await create();
    admin = await run.connect();
    group = uniqueName('group');
  });
  afterEach(() => run.close());

  /** A member with a client of its own, as another process would be. */
  const join = async (
    topic: string,
    mode: 'acknowledging' | 'holding' = 'acknowledging',
    options: Partial<SubscribeOptions> = {},
    drainTimeoutMs = 5_000,
  ): Promise<Recorder> => {
    const bus = await run.connect({ drainTimeoutMs });
    return Recorder.subscribe(run, bus, { group, topics: [topic], startAt: 'earliest', ...options }, mode);
  };

  const eventuallyOwn = (members: readonly Recorder[], counts: readonly number[]): Promise<void> =>
    run.eventually(
      () => members.every((member, i) => member.partitions().length === counts[i]),
      `members own ${counts.join(' and ')} partitions`,
    );

  const expectDisjoint = (members: readonly Recorder[], partitions: number): void => {
    const owned = members.flatMap((member) => member.partitions()).sort((a, b) => a - b);
    expect(owned).toEqual([...Array(partitions).keys()]);
  };

  it('moves as few partitions as it can when members join', async () => {
    const topic = await createTopic(run, admin, 6);
    const first = await join(topic);
    await eventuallyOwn([first], [6]);
    const second = await join(topic);
    await eventuallyOwn([first, second], [3, 3]);
    expectDisjoint([first, second], 6);
    expect(first.revoked.flat()).toHaveLength(3);

    const before = [first.partitions(), second.partitions()];
    const third = await join(topic);
    await eventuallyOwn([first, second, third], [2, 2, 2]);
    expectDisjoint([first, second, third], 6);
    expect(before[0]).toEqual(expect.arrayContaining(first.partitions()));
    expect(before[1]).toEqual(expect.arrayContaining(second.partitions()));
    expect(first.revoked.flat()).toHaveLength(4);
    expect(second.revoked.flat()).toHaveLength(1);
  });

  it('leaves the partitions that stay alone: what they hold is not delivered again', async () => {
    const topic = await createTopic(run, admin, 4);
    for (let p = 0; p < 4; p++) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 5));
    const first = await join(topic, 'holding');
    await run.eventually(() => first.records.length === 20, 'all records arrived');
    const second = await join(topic, 'holding');
    await eventuallyOwn([first, second], [2, 2]);
    await run.eventually(() => second.records.length === 10, 'what moved was delivered to the new owner');
    await run.pass(run.quietMs);
    expect(first.records).toHaveLength(20);
    const kept = first.partitions();
    for (const p of kept) first.acknowledge(...texts(`p${p}-`, 5));
    const offsets = [0, 1, 2, 3].map((p) => (kept.includes(p) ? 5 : 'nothing'));
    await eventuallyCommitted(run, admin, group, topic, offsets);
  });

  it('hands the partitions of a member that leaves to those that stay', async () => {
    const topic = await createTopic(run, admin, 4);
    const first = await join(topic);
    const second = await join(topic);
    await eventuallyOwn([first, second], [2, 2]);
    const kept = second.partitions();
    await run.settle(first.subscription.close());
    await eventuallyOwn([second], [4]);
    expect(second.partitions()).toEqual(expect.arrayContaining(kept));
    expect(second.revoked).toEqual([]);
    for (let p = 0; p < 4; p++) await produceTexts(run, admin, topic, p, [`after-${p}`]);
    await run.eventually(() => second.records.length === 4, 'the one that stayed gets everything');
  });

  it('waits for the drain before it hands over, and commits what was acknowledged in it', async () => {
    const topic = await createTopic(run, admin, 2);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 10));
    const first = await join(topic, 'holding');
    await run.eventually(() => first.records.length === 20, 'all records arrived');
    first.onRevoked = async () => {
      await later(run, 100);
      for (const p of [0, 1]) first.acknowledge(...texts(`p${p}-`, 6));
    };
    const second = await join(topic, 'holding');
    await run.eventually(() => second.records.length >= 4, 'the rest reached the new owner');
    await run.pass(run.quietMs);
    const [moved] = second.partitions();
    expect(second.values()).toEqual(texts(`p${moved}-`, 10).slice(6));
  });

  it('stops delivering a partition before it is revoked', async () => {
    const topic = await createTopic(run, admin, 2);
    const first = await join(topic);
    await eventuallyOwn([first], [2]);
    let revokedPartition: number | undefined;
    let deliveredBefore = -1;
    let deliveredAfter = -1;
    first.onRevoked = async () => {
      revokedPartition = first.revoked[0]?.[0]?.partition;
      await later(run, 50);
      deliveredBefore = first.values(revokedPartition).length;
      await later(run, 300);
      deliveredAfter = first.values(revokedPartition).length;
    };
    const joining = join(topic);
    const producing = (async () => {
      for (let i = 0; i < 20; i++) {
        for (const p of [0, 1]) await produceTexts(run, admin, topic, p, [`p${p}-${i}`]);
        await run.pass(20);
      }
    })();
    const second = await joining;
    await producing;
    await eventuallyOwn([first, second], [1, 1]);
    expect(deliveredAfter).toBe(deliveredBefore);
    const moved = second.partitions()[0] ?? -1;
    expect(moved).toBe(revokedPartition);
    await run.eventually(
      () => first.values(moved).length + second.values(moved).length >= 20,
      'all records of the moved partition arrived at one or the other',
    );
    expect([...first.values(moved), ...second.values(moved)]).toEqual(texts(`p${moved}-`, 20));
  });

  it('does not wait for a drain longer than the drain time-out, and then delivers again', async () => {
    const topic = await createTopic(run, admin, 2);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 3));
    const first = await join(topic, 'holding', {}, 300);
    await run.eventually(() => first.records.length === 6, 'all records arrived');
    first.onRevoked = () => new Promise(() => {});
    const second = await join(topic, 'holding');
    await run.eventually(() => second.records.length === 3, 'the moved partition was delivered again');
    expectDisjoint([first, second], 2);
  });

  it('ignores acknowledgements that come after the revocation', async () => {
    const topic = await createTopic(run, admin, 2);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 3));
    const first = await join(topic, 'holding');
    await run.eventually(() => first.records.length === 6, 'all records arrived');
    const second = await join(topic, 'holding');
    await run.eventually(() => second.records.length === 3, 'the moved partition was delivered again');
    const moved = second.partitions()[0] ?? -1;
    first.acknowledge(...texts(`p${moved}-`, 3));
    await run.pass(run.quietMs);
    const committed = await run.settle(admin.admin.committed(group, topic));
    expect(committed.get(moved)).toBeOneOf([-1, 0]);
    second.acknowledge(`p${moved}-0`);
    const expected = [0, 1].map((p) => (p === moved ? 1 : 'nothing'));
    await eventuallyCommitted(run, admin, group, topic, expected);
  });

  it('ignores acknowledgements under an older assignment of the same member', async () => {
    const topic = await createTopic(run, admin, 2);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 3));
    const first = await join(topic, 'holding');
    await run.eventually(() => first.records.length === 6, 'all records arrived');
    const second = await join(topic, 'holding');
    await run.eventually(() => second.records.length === 3, 'the moved partition was delivered again');
    const moved = second.partitions()[0] ?? -1;
    const old = first.records.filter(({ partition }) => partition === moved);
    await run.settle(second.subscription.close());
    await run.eventually(() => first.values(moved).length === 6, 'it came back to its first owner');
    for (const record of old) first.subscription.acknowledge(record);
    await run.pass(run.quietMs);
    const committed = await run.settle(admin.admin.committed(group, topic));
    expect(committed.get(moved)).toBeOneOf([-1, 0]);
    const again = first.records.filter(({ partition }) => partition === moved).slice(3);
    expect(again.every(({ assignment }) => assignment !== old[0]?.assignment)).toBe(true);
    for (const record of again) first.subscription.acknowledge(record);
    await eventuallyCommitted(
      run,
      admin,
      group,
      topic,
      [0, 1].map((p) => (p === moved ? 3 : 'nothing')),
    );
  });

  it('converges when members join on a backlog, and brings each record to exactly one of them', async () => {
    const topic = await createTopic(run, admin, 4);
    for (let p = 0; p < 4; p++) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 500));
    const members = [await join(topic, 'acknowledging', { unacknowledgedMax: 20 })];
    members.push(await join(topic, 'acknowledging', { unacknowledgedMax: 20 }));
    members.push(await join(topic, 'acknowledging', { unacknowledgedMax: 20 }));
    await eventuallyCommitted(run, admin, group, topic, [500, 500, 500, 500]);
    // The last partition may still be on its way from one member to another, with nothing left in it.
    const owned = (): number => members.reduce((sum, member) => sum + member.partitions().length, 0);
    await run.eventually(() => owned() === 4, 'every partition has an owner');
    expectDisjoint(members, 4);
    const values = members.flatMap((member) => member.values());
    expect(values.sort()).toEqual([0, 1, 2, 3].flatMap((p) => texts(`p${p}-`, 500)).sort());
  });

  it("gives a killed member's partitions to another after the session's time, from the last commit on", async () => {
    const topic = await createTopic(run, admin, 2);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 4));
    const first = await join(topic, 'holding');
    await run.eventually(() => first.records.length === 8, 'all records arrived');
    first.acknowledge('p0-0', 'p0-1', 'p1-0', 'p1-3');
    await eventuallyCommitted(run, admin, group, topic, [2, 1]);
    await run.settle(run.kill(first.bus));
    const calls = first.records.length;
    const second = await join(topic, 'acknowledging');
    await run.eventually(() => second.records.length >= 5, 'the rest was delivered again');
    expect(second.values(0)).toEqual(['p0-2', 'p0-3']);
    expect(second.values(1)).toEqual(['p1-1', 'p1-2', 'p1-3']);
    expect(first.records).toHaveLength(calls);
    expect(first.revoked).toEqual([]);
    await eventuallyCommitted(run, admin, group, topic, [4, 4]);
  });

  it('loses nothing of a member that starts at the latest record and is killed before its first commit', async () => {
    const topic = await createTopic(run, admin, 1);
    await produceTexts(run, admin, topic, 0, texts('old', 3));
    const first = await join(topic, 'holding', { startAt: 'latest' });
    await eventuallyOwn([first], [1]);
    await run.pass(run.quietMs);
    await produceTexts(run, admin, topic, 0, texts('new', 3));
    await run.eventually(() => first.records.length === 3, 'the new records arrived');
    await run.settle(run.kill(first.bus));
    const second = await join(topic, 'acknowledging', { startAt: 'latest' });
    await run.eventually(() => second.records.length >= 3, 'they were delivered again');
    expect(second.values()).toEqual(texts('new', 3));
  });
}
