import { describe, expect, it } from 'vitest';
import { DRAIN_TIMEOUT_MS, MemoryWorld, SESSION_TIMEOUT_MS } from './bus.fixture.ts';

async function start(partitions: number, options: { deliveryDelayMs?: number } = {}) {
  const world = new MemoryWorld(options);
  const bus = world.connect();
  await world.createTopic(bus, partitions);
  return { world, bus };
}

const record = (partition: number, value: string) => ({
  topic: 't',
  partition,
  key: null,
  value: Buffer.from(value),
});

/** Whether a promise has settled by now. */
function watch(promise: Promise<unknown>): { settled: boolean } {
  const state = { settled: false };
  const settle = (): void => {
    state.settled = true;
  };
  promise.then(settle, settle);
  return state;
}

describe('memory bus, in time', () => {
  it('delivers each record when the delivery delay has passed since its append, not sooner', async () => {
    const { world, bus } = await start(1, { deliveryDelayMs: 4 });
    const arrivals: number[] = [];
    await world.subscribe(
      bus,
      {},
      { onRecords: (batch) => arrivals.push(...batch.map(() => world.clock.monotonicMs())) },
    );
    await world.clock.advanceTo(100);
    for (const atMs of [101, 102.5, 103]) {
      world.clock.after(atMs - 100, () => void bus.produce(record(0, `${atMs}`)));
    }
    await world.clock.advanceTo(200);
    expect(arrivals).toEqual([105, 106.5, 107]);
  });

  it('stamps whole milliseconds of the wall clock', async () => {
    const { world, bus } = await start(1);
    const member = await world.subscribe(bus);
    await world.clock.advanceTo(10.7);
    await world.produce(bus, 0, 'v');
    await world.clock.advanceBy(1);
    expect(member.records[0]?.timestampMs).toBe(Date.UTC(2026, 0, 1) + 10);
  });

  it('runs the same way each time', async () => {
    const trace = async (): Promise<string[]> => {
      const { world, bus } = await start(3, { deliveryDelayMs: 2 });
      const members = [await world.subscribe(bus), await world.subscribe(world.connect())];
      for (let i = 0; i < 30; i++) {
        await world.produce(bus, i % 3, `v${i}`);
        if (i === 10) members.push(await world.subscribe(world.connect()));
        if (i === 20) await world.settle(members[1]?.subscription.close() ?? Promise.resolve());
        await world.clock.advanceBy(i % 5);
      }
      return members.flatMap((member) => [...member.calls, ...member.values()]);
    };
    const first = await trace();
    expect(first.length).toBeGreaterThan(30);
    expect(await trace()).toEqual(first);
  });

  it('calls nothing of a subscription before subscribe has resolved', async () => {
    const { world, bus } = await start(1);
    await world.produce(bus, 0, 'v');
    const seen: string[] = [];
    const subscribing = bus.subscribe(
      { group: 'g', topics: ['t'], startAt: 'earliest' },
      { onRecords: () => seen.push('records'), onAssigned: () => seen.push('assigned') },
    );
    void subscribing.then(() => seen.push('resolved'));
    await world.clock.advanceBy(1);
    expect(seen).toEqual(['resolved', 'assigned', 'records']);
  });
});

describe('memory bus, growing and shrinking', () => {
  it('gives partitions that a topic grows by to its groups and readers, from the first record on', async () => {
    const { world, bus } = await start(1);
    const member = await world.subscribe(bus);
    const read: string[] = [];
    await world.settle(
      bus.read({ topics: ['t'], startAt: 'latest' }, (batch) =>
        read.push(...batch.map(({ value }) => `${value}`)),
      ),
    );
    await world.settle(bus.admin.growTopic('t', 3));
    for (const partition of [0, 1, 2]) await world.produce(bus, partition, `p${partition}`);
    await world.clock.advanceBy(1);
    expect(member.calls).toEqual(['assigned 0', 'assigned 1,2']);
    expect(member.values().sort()).toEqual(['p0', 'p1', 'p2']);
    expect(read.sort()).toEqual(['p0', 'p1', 'p2']);
  });

  it('reports the partitions of a deleted topic as lost, and starts afresh with a new one of its name', async () => {
    const { world, bus } = await start(2);
    const member = await world.subscribe(bus);
    await world.produce(bus, 0, 'old');
    await world.clock.advanceBy(1);
    member.acknowledgeAll();
    await world.clock.advanceBy(1);
    expect(await world.committed(bus)).toEqual([1, -1]);
    await world.settle(bus.admin.deleteTopics(['t', 'unknown']));
    await world.clock.advanceBy(1);
    expect(member.calls).toEqual(['assigned 0,1', 'lost 0,1']);
    expect(member.subscription.assigned()).toEqual([]);
    await world.createTopic(bus, 1);
    await world.produce(bus, 0, 'new');
    await world.clock.advanceBy(1);
    expect(member.calls[2]).toBe('assigned 0');
    expect(member.values()).toEqual(['old', 'new']);
    expect(await world.committed(bus)).toEqual([-1]);
  });
});

describe('memory bus, with faults', () => {
  it('keeps records pending for a topic that refuses them, in order, while others pass', async () => {
    const { world, bus } = await start(1);
    await world.createTopic(bus, 1, {}, 'other');
    world.broker.refuse('t');
    const refused = ['a', 'b', 'c'].map((value) => bus.produce(record(0, value)));
    const states = refused.map(watch);
    await world.settle(bus.produce({ ...record(0, 'x'), topic: 'other' }));
    await world.clock.advanceBy(60_000);
    expect(states.some(({ settled }) => settled)).toBe(false);
    world.broker.accept('t');
    refused.push(bus.produce(record(0, 'd')));
    await world.settle(Promise.all(refused));
    expect(await world.kept(bus)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('reports partitions lost to a client that was cut off for longer than its session, which then joins again', async () => {
    const { world, bus } = await start(2);
    const cutOff = world.connect();
    const first = await world.subscribe(cutOff);
    await world.produce(bus, 0, 'v0', 'v1');
    await world.clock.advanceBy(1);
    cutOff.disconnect();
    first.acknowledgeAll();
    const second = await world.subscribe(bus);
    await world.clock.advanceBy(SESSION_TIMEOUT_MS + 1);
    expect(second.values()).toEqual(['v0', 'v1']);
    expect(first.subscription.sinceLastFetchMs()).toBe(SESSION_TIMEOUT_MS + 1);
    expect(await world.committed(bus)).toEqual([-1, -1]);
    cutOff.reconnect();
    await world.clock.advanceBy(1);
    // What it acknowledged while it was away came too late.
    expect(await world.committed(bus)).toEqual([-1, -1]);
    expect(first.calls.slice(0, 2)).toEqual(['assigned 0,1', 'lost 0,1']);
    expect(first.subscription.assigned()).toHaveLength(1);
    expect(second.subscription.assigned()).toHaveLength(1);
    expect(first.subscription.sinceLastFetchMs()).toBe(0);
  });

  it('does not learn of partitions that it was given and lost while it was cut off', async () => {
    const { world } = await start(1);
    const cutOff = world.connect();
    const member = await world.subscribe(cutOff);
    cutOff.disconnect();
    await world.clock.advanceBy(SESSION_TIMEOUT_MS + 1);
    cutOff.reconnect();
    await world.clock.advanceBy(1);
    expect(member.calls).toEqual(['assigned 0']);
  });

  it('takes nothing from a client that was cut off for less than its session', async () => {
    const { world, bus } = await start(1);
    const cutOff = world.connect();
    const member = await world.subscribe(cutOff);
    await world.produce(bus, 0, 'v0');
    await world.clock.advanceBy(1);
    cutOff.disconnect();
    const pending = watch(cutOff.produce(record(0, 'v1')));
    await world.produce(bus, 0, 'v2');
    member.acknowledgeAll();
    await world.clock.advanceBy(SESSION_TIMEOUT_MS - 10);
    expect(pending.settled).toBe(false);
    expect(member.values()).toEqual(['v0']);
    cutOff.reconnect();
    await world.clock.advanceBy(SESSION_TIMEOUT_MS);
    expect(pending.settled).toBe(true);
    expect(member.values()).toEqual(['v0', 'v2', 'v1']);
    expect(member.calls).toEqual(['assigned 0']);
    expect(await world.committed(bus)).toEqual([1]);
  });

  it('does not end sessions for the time that the broker itself was away', async () => {
    const { world, bus } = await start(1);
    const member = await world.subscribe(bus);
    world.broker.stop();
    await world.clock.advanceBy(10 * SESSION_TIMEOUT_MS);
    world.broker.start();
    await world.produce(bus, 0, 'v');
    await world.clock.advanceBy(SESSION_TIMEOUT_MS);
    expect(member.calls).toEqual(['assigned 0']);
    expect(member.values()).toEqual(['v']);
  });

  it('counts the session of a client that died with the broker from the start of the broker on', async () => {
    const { world, bus } = await start(1);
    const dying = world.connect();
    await world.subscribe(dying);
    const standby = await world.subscribe(bus);
    await world.clock.advanceBy(1);
    world.broker.stop();
    dying.crash();
    await world.clock.advanceBy(10 * SESSION_TIMEOUT_MS);
    world.broker.start();
    await world.clock.advanceBy(SESSION_TIMEOUT_MS - 10);
    expect(standby.calls).toEqual([]);
    await world.clock.advanceBy(20);
    expect(standby.calls).toEqual(['assigned 0']);
  });

  it('counts the session of a client that was cut off from the start of the broker on, too', async () => {
    const { world, bus } = await start(1);
    const cutOff = world.connect();
    const member = await world.subscribe(cutOff);
    await world.clock.advanceBy(1);
    cutOff.disconnect();
    world.broker.stop();
    await world.clock.advanceBy(10 * SESSION_TIMEOUT_MS);
    world.broker.start();
    await world.clock.advanceBy(SESSION_TIMEOUT_MS - 10);
    cutOff.reconnect();
    await world.produce(bus, 0, 'v');
    await world.clock.advanceBy(SESSION_TIMEOUT_MS);
    expect(member.calls).toEqual(['assigned 0']);
    expect(member.values()).toEqual(['v']);
  });

  it('keeps records that were on their way when the broker went away for its return', async () => {
    const { world, bus } = await start(1, { deliveryDelayMs: 5 });
    const member = await world.subscribe(bus);
    await world.produce(bus, 0, 'v');
    world.broker.stop();
    await world.clock.advanceBy(100);
    expect(member.values()).toEqual([]);
    world.broker.start();
    await world.clock.advanceBy(0);
    expect(member.values()).toEqual(['v']);
  });

  it('leaves everything of a crashed client pending, and calls it no more', async () => {
    const { world, bus } = await start(1);
    const dying = world.connect();
    const member = await world.subscribe(dying);
    const read: unknown[] = [];
    await world.settle(dying.read({ topics: ['t'], startAt: 'earliest' }, (batch) => read.push(...batch)));
    await world.clock.advanceBy(1);
    const before = watch(dying.produce(record(0, 'in flight')));
    dying.crash();
    const after = [
      watch(dying.produce(record(0, 'late'))),
      watch(dying.partitionCount('t')),
      watch(dying.subscribe({ group: 'h', topics: ['t'], startAt: 'latest' }, { onRecords: () => {} })),
    ];
    await world.produce(bus, 0, 'v');
    await world.clock.advanceBy(10 * SESSION_TIMEOUT_MS);
    expect([before, ...after].some(({ settled }) => settled)).toBe(false);
    expect(await world.kept(bus)).toEqual(['v']);
    expect(member.calls).toEqual(['assigned 0']);
    expect(member.subscription.assigned()).toEqual([]);
    expect(member.records).toEqual([]);
    expect(read).toEqual([]);
    await world.settle(dying.close());
  });

  it('closes while the broker is away, and rejects what it could not store', async () => {
    const { world, bus } = await start(1);
    const leaving = world.connect();
    const member = await world.subscribe(leaving);
    await world.clock.advanceBy(1);
    world.broker.stop();
    const produced = leaving.produce(record(0, 'v'));
    const asked = leaving.partitionCount('t');
    const states = [watch(produced), watch(asked)];
    const closing = leaving.close();
    await world.clock.advanceBy(DRAIN_TIMEOUT_MS / 2);
    expect(states.some(({ settled }) => settled)).toBe(false);
    await world.settle(closing);
    await expect(produced).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    await expect(asked).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    expect(member.calls).toEqual(['assigned 0', 'revoked 0']);
    world.broker.start();
    await world.clock.advanceBy(1);
    const next = await world.subscribe(bus);
    await world.clock.advanceBy(1);
    expect(next.calls).toEqual(['assigned 0']);
  });
});

describe('memory bus, closing', () => {
  it('waits for partitions that are being revoked already', async () => {
    const { world, bus } = await start(2);
    const drains = [800, 100];
    let drained = 0;
    const first = await world.subscribe(
      bus,
      {},
      {
        onRevoked: async () => {
          await new Promise<void>((resolve) => world.clock.after(drains.shift() ?? 0, resolve));
          drained++;
        },
      },
    );
    await world.clock.advanceBy(1);
    await world.subscribe(world.connect());
    await world.clock.advanceBy(400);
    const closing = watch(first.subscription.close());
    await world.clock.advanceBy(300);
    expect([drained, closing.settled]).toEqual([1, false]);
    await world.clock.advanceBy(200);
    expect([drained, closing.settled]).toEqual([2, true]);
  });

  it('takes no partitions any more', async () => {
    const { world, bus } = await start(2);
    const drain = (): Promise<void> => new Promise((resolve) => world.clock.after(500, resolve));
    const [first, second] = [
      await world.subscribe(bus, {}, { onRevoked: drain }),
      await world.subscribe(bus),
    ];
    await world.clock.advanceBy(1_000);
    const closing = first.subscription.close();
    await world.settle(second.subscription.close());
    await world.settle(closing);
    await world.produce(bus, 0, 'a');
    await world.produce(bus, 1, 'b');
    await world.clock.advanceBy(1_000);
    expect(first.calls).toEqual(['assigned 0,1']);
    expect([...first.values(), ...second.values()]).toEqual([]);
    const third = await world.subscribe(bus);
    await world.clock.advanceBy(1);
    expect(third.values().sort()).toEqual(['a', 'b']);
  });

  it('waits for records that their topic refuses, and stores them if it takes them in time', async () => {
    const { world, bus } = await start(1);
    const leaving = world.connect();
    world.broker.refuse('t');
    const produced = leaving.produce(record(0, 'v'));
    const closing = watch(leaving.close());
    await world.clock.advanceBy(DRAIN_TIMEOUT_MS - 10);
    expect(closing.settled).toBe(false);
    world.broker.accept('t');
    await world.settle(produced);
    expect(closing.settled).toBe(true);
    expect(await world.kept(bus)).toEqual(['v']);
  });
});

describe('memory bus, misused', () => {
  it.each([
    { what: 'slots of two topics', options: { topics: ['t', 'u'], slots: [0] }, code: 'INVALID_CONFIG' },
    { what: 'no slots at all', options: { slots: [] }, code: 'INVALID_CONFIG' },
    { what: 'a slot that does not exist', options: { slots: [2] }, code: 'BUS_UNAVAILABLE' },
    { what: 'a topic that does not exist', options: { topics: ['missing'] }, code: 'BUS_UNAVAILABLE' },
  ])('refuses $what', async ({ options, code }) => {
    const { world, bus } = await start(2);
    await world.createTopic(bus, 1, {}, 'u');
    await expect(world.subscribe(bus, options)).rejects.toMatchObject({ code });
  });

  it('refuses slots and spread partitions in one group', async () => {
    const { world, bus } = await start(2);
    await world.subscribe(bus, { slots: [0] });
    await expect(world.subscribe(bus)).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });

  it('refuses a partition that does not exist', async () => {
    const { world, bus } = await start(2);
    await expect(world.settle(bus.produce(record(2, 'v')))).rejects.toMatchObject({
      code: 'BUS_UNAVAILABLE',
    });
    await expect(
      world.settle(bus.read({ topics: ['t'], startAt: 'latest', partitions: [2] }, () => {})),
    ).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
  });

  it('reports what onRecords throws, goes on reading, and delivers again what a member did not acknowledge', async () => {
    const { world, bus } = await start(1);
    const seen: string[] = [];
    const member = await world.subscribe(
      bus,
      {},
      {
        onRecords: (batch) => {
          seen.push(...batch.map(({ value }) => `${value}`));
          throw new Error('planted');
        },
      },
    );
    await world.settle(
      bus.read({ topics: ['t'], startAt: 'latest' }, () => {
        throw new Error('planted');
      }),
    );
    await world.produce(bus, 0, 'a');
    await world.clock.advanceBy(1);
    await world.produce(bus, 0, 'b');
    await world.clock.advanceBy(600);
    expect(seen).toEqual(['a', 'a', 'b']);
    expect(member.errors).toHaveLength(2);
    expect(world.telemetry.logs.filter(({ level }) => level === 'error')).toHaveLength(2);
  });

  it('revokes a partition once, though the group is spread anew while it drains', async () => {
    const { world, bus } = await start(4);
    const revoked: number[] = [];
    const slow = await world.subscribe(
      bus,
      {},
      {
        onRevoked: async (places) => {
          revoked.push(...places.map(({ partition }) => partition));
          await new Promise<void>((resolve) => world.clock.after(500, resolve));
        },
      },
    );
    await world.clock.advanceBy(1);
    const second = await world.subscribe(world.connect());
    await world.clock.advanceBy(100);
    await world.settle(second.subscription.close());
    await world.subscribe(world.connect());
    await world.clock.advanceBy(2_000);
    expect([...revoked].sort()).toEqual([2, 3]);
    expect(slow.subscription.assigned()).toHaveLength(2);
  });

  it('lets partitions go though onRevoked rejects', async () => {
    const { world, bus } = await start(2);
    const first = await world.subscribe(bus, {}, { onRevoked: () => Promise.reject(new Error('planted')) });
    const second = await world.subscribe(world.connect());
    await world.clock.advanceBy(10);
    expect(second.calls).toEqual(['assigned 1']);
    expect(first.errors).toMatchObject([{ message: 'planted' }]);
  });

  it('rejects a subscription that was under way when the bus was closed', async () => {
    const { world, bus } = await start(1);
    const subscribing = bus.subscribe(
      { group: 'g', topics: ['t'], startAt: 'latest' },
      { onRecords: () => {} },
    );
    const rejected = expect(subscribing).rejects.toMatchObject({ code: 'BUS_UNAVAILABLE' });
    await world.settle(bus.close());
    await rejected;
  });
});
