import { describe, expect, it } from 'vitest';
import type { Connection } from '../../../src/client/connection.ts';
import { makeScoredResult, makeTimings, type ScoredResult } from '../../../src/contracts/records.ts';
import { topicSpecs } from '../../../src/contracts/topic-specs.ts';
import { partitionForKey } from '../../../src/core/request/partition.ts';
import { openOutsideLedger } from '../../../src/traffic/outside-ledger.ts';
import { openSender } from '../../../src/traffic/send-requests.ts';
import { MemoryWorld } from '../adapters/memory/bus.fixture.ts';
import { codecs, scoreRequest, topics } from '../stages/records.fixture.ts';

async function start() {
  const world = new MemoryWorld();
  const bus = world.connect();
  await world.settle(
    bus.admin.createTopics(
      topicSpecs({ topics, partitions: 3, replication: 1, pools: new Map(), tenants: ['acme'] }),
    ),
  );
  const { clock, telemetry } = world;
  const connection: Connection = {
    bus,
    codecs,
    topics,
    clock,
    telemetry,
    newId: () => 'id',
    close: async () => {},
  };
  const seen: ScoredResult[] = [];
  const ledger = await world.settle(
    openOutsideLedger(connection, { onResult: (result) => seen.push(result) }),
  );
  const send = await world.settle(openSender(connection));
  const answer = (offset: number, fields: Partial<ScoredResult> = {}, partition = 0): Promise<void> =>
    world.settle(
      bus.produce({
        topic: topics.fixed('scored-results'),
        partition,
        key: Buffer.from('r'),
        value: codecs.for('ScoredResult').encode(
          makeScoredResult({
            requestId: 'r',
            identity: { topic: topics.ingress(), partition: partitionForKey(Buffer.from('r1'), 3), offset },
            outcome: 'SCORED',
            timings: makeTimings({ totalMs: 9 }),
            ...fields,
          }),
        ),
      }),
    );
  return { world, connection, ledger, send, answer, seen };
}

describe('the outside ledger', () => {
  it('counts what reached ingress and what came of it, and is balanced once none is in flight', async () => {
    const { world, ledger, send, answer, seen } = await start();
    for (let n = 0; n < 3; n += 1) await world.settle(send(scoreRequest()));
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({ ingress: 3, inFlight: 3, balanced: false });
    await answer(0);
    await answer(1, { outcome: 'EXPIRED' });
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({
      ingress: 3,
      inFlight: 1,
      outcomes: { scored: 1, expired: 1 },
      balanced: false,
    });
    await answer(2);
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({ inFlight: 0, outcomes: { scored: 2 }, balanced: true });
    expect(seen.map(({ outcome }) => outcome)).toEqual(['SCORED', 'EXPIRED', 'SCORED']);
  });

  it('measures from the append of the request to that of its first result', async () => {
    const { world, ledger, send, answer } = await start();
    await world.settle(send(scoreRequest()));
    await world.clock.advanceBy(70);
    await answer(0);
    await world.clock.advanceBy(500);
    await answer(0);
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({ latencyMs: { p50: 70, p99: 70 }, duplicatesDropped: 1 });
  });

  it.each([
    ['twice on one partition, which readers drop', [0, 0], { duplicatesVisible: 0, balanced: true }],
    ['on two partitions, which readers see', [0, 1], { duplicatesVisible: 1, balanced: false }],
  ])('knows a result that came %s', async (_name, partitions, expected) => {
    const { world, ledger, send, answer } = await start();
    await world.settle(send(scoreRequest()));
    for (const partition of partitions) await answer(0, {}, partition);
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject(expected);
  });

  it('knows a result of what never reached ingress, and takes an unknown outcome for none', async () => {
    const { world, ledger, send, answer } = await start();
    await world.settle(send(scoreRequest()));
    await answer(7);
    await answer(0, { outcome: 'UNKNOWN' });
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({ unknown: 1, inFlight: 1, balanced: false });
  });

  it.each([
    ['has no frame', Buffer.from('?')],
    ['is empty', null],
  ])('counts a result that %s, and goes on', async (_name, value) => {
    const { world, connection, ledger, send, answer } = await start();
    await world.settle(send(scoreRequest()));
    const topic = topics.fixed('scored-results');
    await world.settle(connection.bus.produce({ topic, partition: 0, key: null, value }));
    await answer(0);
    await world.clock.advanceBy(10);
    expect(ledger.summary()).toMatchObject({
      unreadable: 1,
      unknown: 0,
      inFlight: 0,
      outcomes: { scored: 1 },
      balanced: false,
    });
  });

  it('waits until nothing is in flight, or says that it was not so in time', async () => {
    const { world, ledger, send, answer } = await start();
    await world.settle(send(scoreRequest()));
    await world.clock.advanceBy(10);
    const startedMs = world.clock.monotonicMs();
    expect(await world.settle(ledger.drained(1_000, 1))).toBe(false);
    expect(world.clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(1_000);
    const drained = ledger.drained(60_000, 1);
    await answer(0);
    expect(await world.settle(drained)).toBe(true);
  });

  it('waits no longer once it is told to stop', async () => {
    const { world, ledger, send } = await start();
    await world.settle(send(scoreRequest()));
    await world.clock.advanceBy(10);
    const stop = new AbortController();
    const startedMs = world.clock.monotonicMs();
    const drained = ledger.drained(60_000, 1, stop.signal);
    await world.clock.advanceBy(1_000);
    stop.abort();
    expect(await world.settle(drained)).toBe(false);
    expect(world.clock.monotonicMs() - startedMs).toBeLessThan(1_200);
  });

  it('reads the ingress topics that it is told, from now on', async () => {
    const { world, connection } = await start();
    const topic = topics.ingress('acme');
    const produce = () =>
      world.settle(connection.bus.produce({ topic, partition: 0, key: null, value: Buffer.from('any') }));
    await produce();
    const ledger = await world.settle(openOutsideLedger(connection, { ingress: [topic] }));
    await produce();
    await world.clock.advanceBy(10);
    expect(ledger.summary().ingress).toBe(1);
    await ledger.close();
    await produce();
    await world.clock.advanceBy(10);
    expect(ledger.summary().ingress).toBe(1);
  });
});

describe('a sender', () => {
  it('puts a request on the partition of its id, as any Kafka client would', async () => {
    const { world, connection, send } = await start();
    const places: [string, number][] = [];
    await world.settle(
      connection.bus.read({ topics: [topics.ingress()], startAt: 'earliest' }, (records) => {
        for (const { key, partition } of records) places.push([key?.toString() ?? '', partition]);
      }),
    );
    for (const requestId of ['a', 'b', 'c', 'd']) await world.settle(send(scoreRequest({ requestId })));
    await world.clock.advanceBy(10);
    expect(places).toHaveLength(4);
    for (const [id, partition] of places) expect(partition).toBe(partitionForKey(Buffer.from(id), 3));
  });
});
