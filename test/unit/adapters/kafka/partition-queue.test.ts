import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PartitionQueue } from '../../../../src/adapters/kafka/partition-queue.ts';
import { Watched } from '../../alive.fixture.ts';
import { record } from './records.ts';

const LIMITS = { unacknowledgedMax: 10, unacknowledgedBytesMax: 1_000 };

function offsetsOf(queue: PartitionQueue): number[] {
  return queue.take().map(({ offset }) => offset);
}

describe('PartitionQueue', () => {
  it('delivers every record once and in order, within the limits, whatever is fetched and acknowledged when', () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('fetch' as const),
        sizes: fc.array(fc.nat(400), { maxLength: 25 }),
        gap: fc.nat(2),
      }),
      fc.record({ kind: fc.constant('acknowledge' as const), which: fc.nat(30) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new PartitionQueue(0, LIMITS);
        const fetched: number[] = [];
        const delivered: number[] = [];
        const open = new Map<number, number>();
        let next = 0;
        for (const each of steps) {
          if (each.kind === 'fetch') {
            const records = each.sizes.map((size) => record(next++, size));
            fetched.push(...records.map(({ offset }) => offset));
            next += each.gap;
            queue.offer(records, next);
          } else {
            const offset = [...open.keys()][each.which % Math.max(1, open.size)];
            if (offset !== undefined) {
              expect(queue.acknowledge(offset)).toBe(true);
              open.delete(offset);
            }
          }
          for (const { offset, value } of queue.take()) {
            delivered.push(offset);
            open.set(offset, value?.length ?? 0);
          }
          const openBytes = [...open.values()].reduce((sum, bytes) => sum + bytes, 0);
          expect(open.size).toBeLessThanOrEqual(LIMITS.unacknowledgedMax);
          expect(open.size <= 1 || openBytes <= LIMITS.unacknowledgedBytesMax).toBe(true);
          expect(queue.unacknowledged).toBe(open.size);
          expect(queue.position).toBe(next);
          const oldestOpen = Math.min(...open.keys());
          const undelivered = fetched[delivered.length] ?? Number.POSITIVE_INFINITY;
          expect(queue.committable).toBeLessThanOrEqual(Math.min(oldestOpen, undelivered));
        }
        expect(delivered).toEqual(fetched.slice(0, delivered.length));
        for (let round = 0; delivered.length < fetched.length; round++) {
          expect(round).toBeLessThan(10_000);
          for (const offset of open.keys()) queue.acknowledge(offset);
          open.clear();
          for (const { offset } of queue.take()) {
            delivered.push(offset);
            open.set(offset, 0);
          }
        }
        for (const offset of open.keys()) queue.acknowledge(offset);
        expect(delivered).toEqual(fetched);
        if (queue.take().length === 0) expect(queue.committable).toBe(next);
      }),
    );
  });

  it('stops at the records that may be unacknowledged, and goes on by as many as are acknowledged', () => {
    const queue = new PartitionQueue(0, LIMITS);
    queue.offer(
      Array.from({ length: 30 }, (_, offset) => record(offset)),
      30,
    );
    expect(offsetsOf(queue)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(offsetsOf(queue)).toEqual([]);
    queue.acknowledge(4);
    queue.acknowledge(9);
    expect(offsetsOf(queue)).toEqual([10, 11]);
    expect(queue.committable).toBe(0);
  });

  it('lets a record above the bytes that may be unacknowledged go alone', () => {
    const queue = new PartitionQueue(0, LIMITS);
    queue.offer([record(0, 10), record(1, 5_000), record(2, 10)], 3);
    expect(offsetsOf(queue)).toEqual([0]);
    expect(offsetsOf(queue)).toEqual([]);
    queue.acknowledge(0);
    expect(offsetsOf(queue)).toEqual([1]);
    queue.acknowledge(1);
    expect(offsetsOf(queue)).toEqual([2]);
  });

  it('asks to stop fetching on a stock of records or of bytes, and to go on well before it is used up', () => {
    const many = new PartitionQueue(0, LIMITS);
    many.offer(
      Array.from({ length: 25 }, (_, offset) => record(offset)),
      25,
    );
    many.take();
    expect([many.full, many.low]).toEqual([true, false]);
    for (let offset = 0; offset < 10; offset++) many.acknowledge(offset);
    many.take();
    expect(many.held).toBe(5);
    expect([many.full, many.low]).toEqual([false, true]);

    const large = new PartitionQueue(0, LIMITS);
    large.offer([record(0, 900), record(1, 600)], 2);
    large.take();
    expect([large.full, large.low]).toEqual([true, false]);
  });

  it('stops when one record stays open and the window behind it has grown out of all proportion', () => {
    const queue = new PartitionQueue(0, LIMITS);
    let delivered = 0;
    for (let offset = 0; offset < 2_000; offset++) {
      queue.offer([record(offset)], offset + 1);
      for (const each of queue.take()) {
        delivered++;
        if (each.offset > 0) queue.acknowledge(each.offset);
      }
    }
    expect(delivered).toBe(LIMITS.unacknowledgedMax * 100);
    queue.acknowledge(0);
    expect(queue.take().length).toBeGreaterThan(0);
  });

  it('commits past fetches that held nothing for us, but not past what waits', () => {
    const queue = new PartitionQueue(0, LIMITS);
    queue.offer([], 7);
    expect(queue.committable).toBe(7);
    queue.offer([record(7)], 8);
    queue.offer([], 12);
    expect(queue.committable).toBe(7);
    queue.take();
    expect(queue.committable).toBe(7);
    queue.acknowledge(7);
    expect(queue.committable).toBe(12);
  });

  it('forgets what was not delivered when the partition goes away, and commits nothing of it', () => {
    const queue = new PartitionQueue(0, LIMITS);
    queue.offer(
      Array.from({ length: 15 }, (_, offset) => record(offset)),
      15,
    );
    queue.take();
    queue.drop();
    for (let offset = 0; offset < 10; offset++) queue.acknowledge(offset);
    expect(queue.take()).toEqual([]);
    expect(queue.committable).toBe(10);
  });

  it('lets go of what it delivered, also while it is never empty', async () => {
    const queue = new PartitionQueue(0, { unacknowledgedMax: 10, unacknowledgedBytesMax: 1e9 });
    const watched = new Watched();
    let next = 0;
    const fetch = (): void => {
      const records = Array.from({ length: 10 }, () => watched.add(record(next++)));
      queue.offer(records, next);
    };
    fetch();
    for (let round = 0; round < 200; round++) {
      fetch();
      for (const { offset } of queue.take()) queue.acknowledge(offset);
    }
    expect({ letGo: await watched.areAlive(10), held: queue.held }).toEqual({ letGo: true, held: 10 });
  });
});
