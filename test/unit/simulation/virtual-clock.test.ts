import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventHeap, type ScheduledEvent } from '../../../src/simulation/event-heap.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';

describe('virtualClock', () => {
  it('runs calls in the order of their times, then of their scheduling', async () => {
    const clock = virtualClock();
    const seen: string[] = [];
    clock.after(5, () => seen.push(`late at ${clock.monotonicMs()}`));
    clock.after(1, () => seen.push(`first at ${clock.monotonicMs()}`));
    clock.after(1, () => seen.push(`second at ${clock.monotonicMs()}`));
    await clock.advanceTo(4);
    expect(seen).toEqual(['first at 1', 'second at 1']);
    expect(clock.monotonicMs()).toBe(4);
    await clock.advanceBy(1);
    expect(seen).toEqual(['first at 1', 'second at 1', 'late at 5']);
  });

  it('lets a promise chain of any length end before time goes on', async () => {
    const clock = virtualClock();
    let doneAtMs = -1;
    clock.after(1, async () => {
      for (let i = 0; i < 10_000; i++) await null;
      doneAtMs = clock.monotonicMs();
    });
    clock.after(2, () => expect(doneAtMs).toBe(1));
    await clock.advanceTo(3);
    expect(doneAtMs).toBe(1);
  });

  it('runUntil stops at the condition, at the limit, or when nothing is left', async () => {
    const clock = virtualClock();
    let count = 0;
    const cancel = clock.every(10, () => count++);
    expect(await clock.runUntil(() => count === 3)).toBe(true);
    expect(clock.monotonicMs()).toBe(30);
    expect(await clock.runUntil(() => false, 15)).toBe(false);
    expect(clock.monotonicMs()).toBe(45);
    cancel();
    expect(await clock.runUntil(() => false)).toBe(false);
    expect(clock.pending).toBe(0);
    expect(clock.monotonicMs()).toBe(45);
  });

  it('refuses to go back, and to be advanced twice at once', async () => {
    const clock = virtualClock();
    await clock.advanceTo(10);
    await expect(clock.advanceTo(9)).rejects.toThrow(RangeError);
    clock.after(1, () => {});
    const advancing = clock.advanceTo(20);
    await expect(clock.advanceTo(30)).rejects.toThrow('already being advanced');
    await advancing;
  });

  it('goes on after a call that threw', async () => {
    const clock = virtualClock();
    clock.after(1, () => {
      throw new Error('planted');
    });
    await expect(clock.advanceTo(2)).rejects.toThrow('planted');
    await clock.advanceTo(2);
    expect(clock.monotonicMs()).toBe(2);
  });

  it('shows the wall time from its start on', async () => {
    const clock = virtualClock({ startWallMs: 1_000 });
    await clock.advanceTo(2.5);
    expect(clock.wallMs()).toBe(1_002.5);
  });
});

describe('EventHeap', () => {
  it('gives events back in order, whatever was removed from the middle', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.boolean()), { maxLength: 200, size: 'max' }),
        (scheduled) => {
          const heap = new EventHeap();
          const events = scheduled.map(([dueMs], sequence): ScheduledEvent => {
            return { dueMs, sequence, callback: () => {}, position: -1 };
          });
          for (const event of events) heap.push(event);
          const kept = events.filter((event, i) => {
            if (scheduled[i]?.[1] !== true) return true;
            heap.remove(event);
            heap.remove(event);
            return false;
          });
          kept.sort((a, b) => a.dueMs - b.dueMs || a.sequence - b.sequence);
          expect(heap.size).toBe(kept.length);
          for (const event of kept) expect(heap.pop()).toBe(event);
          expect(heap.pop()).toBeUndefined();
        },
      ),
    );
  });
});
