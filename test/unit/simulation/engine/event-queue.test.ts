import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../../../src/simulation/engine/event-queue.ts';

describe('EventQueue', () => {
  it('gives events in the order of their times, then of their scheduling, whatever was taken in between', () => {
    const step = fc.oneof(
      fc.record({ schedule: fc.integer({ min: 0, max: 5 }) }),
      fc.constant({ take: true } as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
        const queue = new EventQueue();
        const expected: { dueMs: number; event: number }[] = [];
        let event = 0;
        for (const each of steps) {
          if ('schedule' in each) {
            const dueMs = queue.nowMs + each.schedule;
            queue.schedule(dueMs, event);
            // A stable insertion: behind all that is due no later.
            const place = expected.findIndex((other) => other.dueMs > dueMs);
            expected.splice(place < 0 ? expected.length : place, 0, { dueMs, event });
            event += 1;
          } else if (expected.length > 0) {
            const first = expected.shift();
            expect(queue.nextMs).toBe(first?.dueMs);
            expect(queue.take()).toBe(first?.event);
            expect(queue.nowMs).toBe(first?.dueMs);
          }
          expect(queue.size).toBe(expected.length);
        }
        for (const left of expected) expect(queue.take()).toBe(left.event);
      }),
    );
  });

  it('keeps the order of many at the same time, past its first capacity', () => {
    const queue = new EventQueue();
    const events = Array.from({ length: 5_000 }, (_, event) => event);
    for (const event of events) queue.schedule(1 + (event % 2), event);
    const even = events.filter((event) => event % 2 === 0);
    const odd = events.filter((event) => event % 2 === 1);
    expect(events.map(() => queue.take())).toEqual([...even, ...odd]);
  });

  it.each([Number.NaN, 4.999])('refuses an event at %s ms where time stands at 5', (dueMs) => {
    const queue = new EventQueue();
    queue.schedule(5, 1);
    queue.take();
    expect(() => queue.schedule(dueMs, 2)).toThrow(RangeError);
    queue.schedule(5, 3);
    expect(queue.take()).toBe(3);
  });

  it('tells an empty queue by its next time, and refuses to take from it', () => {
    const queue = new EventQueue();
    expect(queue.nextMs).toBe(Number.POSITIVE_INFINITY);
    expect(() => queue.take()).toThrow('no event is scheduled');
  });
});
