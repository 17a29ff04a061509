import { describe, expect, it } from 'vitest';
import type { OutboundRecord } from '../../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { AckSender } from '../../../../src/stages/accelerator-worker/ack-sender.ts';
import { codecs, delivery, dispatch, inbound } from '../records.fixture.ts';

const LOAD = {
  queued: 1,
  running: 1,
  queuedPredictedMs: 5,
  enqueuedPredictedMs: 50,
  completedPredictedMs: 40,
  busyMs: 60,
  speed: 1,
  serviceMs: 4,
  batchRequests: 16,
};

function start() {
  const clock = virtualClock();
  const produced: OutboundRecord[] = [];
  const acks = new AckSender({
    worker: 'w1',
    incarnation: 'i1',
    pool: 'cpu',
    topic: 'acks',
    coalesceMs: 2,
    codec: codecs.for('DispatchAck'),
    clock,
    load: () => LOAD,
    produce: (topic, make) => produced.push({ topic, ...make() }),
  });
  const arrive = (sequence: number, router = 'a#1', slot = 0) => {
    const taken = delivery(dispatch({ sequence, router, ackPartition: router === 'a#1' ? 2 : 3 }), {
      record: inbound({ partition: slot }),
      receivedAtMs: clock.monotonicMs(),
    });
    acks.arrived(taken);
    return taken;
  };
  const sent = () =>
    produced.splice(0).map(({ value }) => {
      const decoded = codecs.for('DispatchAck').decode(value);
      if (decoded.status !== 'ok') throw new Error('no acknowledgement');
      return decoded.value;
    });
  return { clock, acks, produced, arrive, sent };
}

describe('acknowledgements', () => {
  it('go to the router that dispatched, with what ended, how long it took, and the load', async () => {
    const { clock, acks, produced, arrive, sent } = start();
    const taken = arrive(7);
    await clock.advanceBy(5);
    acks.completed(taken);
    await clock.advanceBy(2);
    expect(produced).toMatchObject([{ topic: 'acks', partition: 2 }]);
    expect(produced[0]?.key?.toString()).toBe('a#1');
    expect(sent()).toEqual([
      {
        router: 'a#1',
        worker: 'w1',
        incarnation: 'i1',
        pool: 'cpu',
        slot: 0,
        completed: [7],
        sojournMs: [5],
        serviceMs: 4,
        lastSequenceSeen: 7,
        queuedPredictedMs: 5,
        enqueuedPredictedMs: 50,
        completedPredictedMs: 40,
        busyMs: 60,
        snapshotMs: 7,
        batchRequests: 16,
        routers: 1,
      },
    ]);
  });

  it('say how many routers dispatched to the slot in the last 5 s', async () => {
    const { clock, acks, arrive, sent } = start();
    const routersNow = async (router: string, slot = 0) => {
      acks.completed(arrive(1, router, slot));
      await clock.advanceBy(5);
      return sent().map(({ routers }) => routers);
    };
    expect(await routersNow('a#1')).toEqual([1]);
    expect(await routersNow('b#1')).toEqual([2]);
    expect(await routersNow('a#1', 1)).toEqual([1]);
    await clock.advanceBy(4_000);
    expect(await routersNow('b#1')).toEqual([2]);
    await clock.advanceBy(1_000);
    expect(await routersNow('b#1')).toEqual([1]);
  });

  it('are gathered, at most so long, and one is sent per router and slot', async () => {
    const { clock, acks, arrive, sent } = start();
    const taken = [arrive(1), arrive(2), arrive(1, 'b#1'), arrive(3, 'a#1', 1)];
    acks.completed(taken[0] ?? arrive(9));
    await clock.advanceBy(1);
    for (const each of taken.slice(1)) acks.completed(each);
    expect(sent()).toEqual([]);
    await clock.advanceBy(1);
    expect(sent().map(({ router, slot, completed }) => [router, slot, completed])).toEqual([
      ['a#1', 0, [1, 2]],
      ['b#1', 0, [1]],
      ['a#1', 1, [3]],
    ]);
    await clock.advanceBy(100);
    expect(sent()).toEqual([]);
  });

  it('say the highest sequence that reached the queue, also after earlier acknowledgements', async () => {
    const { clock, acks, arrive, sent } = start();
    const [first, second, third] = [arrive(1), arrive(3), arrive(2)];
    for (const each of [first, second, third]) {
      acks.completed(each);
      await clock.advanceBy(5);
    }
    expect(sent().map(({ lastSequenceSeen }) => lastSequenceSeen)).toEqual([3, 3, 3]);
  });

  it('are not sent for what only arrived, nor to nobody', async () => {
    const { clock, acks, arrive, sent } = start();
    arrive(1);
    const nobodys = delivery(dispatch({ ackPartition: -1 }));
    acks.arrived(nobodys);
    acks.completed(nobodys);
    acks.flush();
    await clock.advanceBy(10);
    expect(sent()).toEqual([]);
  });

  it('go out at once when flushed, and not a second time', async () => {
    const { clock, acks, arrive, sent } = start();
    acks.completed(arrive(1));
    acks.flush();
    expect(sent()).toHaveLength(1);
    await clock.advanceBy(10);
    expect(sent()).toEqual([]);
  });
});

describe('a router', () => {
  it.each<[how: string, end: 'completed' | 'abandoned']>([
    ['ended', 'completed'],
    ['was given up', 'abandoned'],
  ])('is forgotten once all that it sent %s: its next dispatch starts afresh', async (_how, end) => {
    const { clock, acks, arrive, sent } = start();
    const taken = [arrive(8), arrive(9)];
    for (const each of taken) acks[end](each);
    await clock.advanceBy(5);
    sent();
    acks.completed(arrive(4));
    await clock.advanceBy(5);
    expect(sent().map(({ lastSequenceSeen }) => lastSequenceSeen)).toEqual([4]);
  });

  it.each<[how: string, end: 'completed' | 'abandoned']>([
    ['end', 'completed'],
    ['are given up', 'abandoned'],
  ])(
    'is not known 5 s after its last dispatch, however many come and whether their dispatches %s',
    async (_how, end) => {
      const { clock, acks, arrive } = start();
      for (let n = 0; n < 2_000; n += 1) {
        const slot = n % 4;
        acks[end](arrive(1, `router-${n}#1`, slot));
        await clock.advanceBy(10);
      }
      // One each 10 ms: 500 in 5 s, and the latest.
      expect(acks.known).toBeLessThanOrEqual(504);
      expect(acks.known).toBeGreaterThanOrEqual(500);
    },
  );
});
