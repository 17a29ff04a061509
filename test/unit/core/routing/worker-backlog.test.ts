import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { SCORE_RULES } from '../../../../src/core/routing/router-score.ts';
import { WorkerBacklog } from '../../../../src/core/routing/worker-backlog.ts';
import type { WorkerSnapshot } from '../../../../src/core/routing/worker-snapshot.ts';

const NO_FLOOR = { ...SCORE_RULES, floor: 0, overdueSlackMs: Number.POSITIVE_INFINITY };

function snapshot(takenAtMs: number, more: Partial<WorkerSnapshot> = {}): WorkerSnapshot {
  return { takenAtMs, queuedMs: 0, lastSequenceSeen: -1, enqueuedMs: 0, ...more };
}

/** A backlog whose hop of 2 ms is known from one dispatch that ended. */
function known(speed: number, rules = NO_FLOOR): WorkerBacklog {
  const backlog = new WorkerBacklog(speed, rules);
  backlog.observe(snapshot(-101));
  backlog.dispatched(0, 1, -100);
  backlog.ended({ sequence: 0, sojournMs: 1, busyMs: 1 }, -95);
  backlog.observe(snapshot(-97, { lastSequenceSeen: 0, enqueuedMs: 1 }));
  return backlog;
}

describe('WorkerBacklog', () => {
  let backlog: WorkerBacklog;
  beforeEach(() => {
    backlog = known(2);
  });

  it("drains a snapshot at the worker's speed, to the arrival of a dispatch made now", () => {
    backlog.observe(snapshot(0, { queuedMs: 40, lastSequenceSeen: 0, enqueuedMs: 50 }));
    expect(backlog.waitMs(5)).toBeCloseTo(20 - 5 - 2);
    expect(backlog.waitMs(50)).toBe(0);
  });

  it('replays own dispatches that a snapshot did not contain, draining in between', () => {
    backlog.dispatched(1, 8, 0);
    backlog.dispatched(2, 8, 10);
    backlog.observe(snapshot(1, { queuedMs: 2, lastSequenceSeen: 0, enqueuedMs: 3 }));
    // 1 ms at 1; at 2 the first arrives (4 ms), at 12 the second on an idle worker (4 ms).
    expect(backlog.waitMs(12)).toBeCloseTo(4 - 2);
    backlog.observe(snapshot(11, { queuedMs: 0, lastSequenceSeen: 1, enqueuedMs: 11 }));
    expect(backlog.waitMs(12)).toBeCloseTo(4 - 2);
    backlog.observe(snapshot(13, { queuedMs: 6, lastSequenceSeen: 2, enqueuedMs: 19 }));
    expect(backlog.waitMs(13)).toBeCloseTo(3 - 2);
  });

  it('passes over a snapshot that is older than the one it has', () => {
    backlog.observe(snapshot(10, { queuedMs: 40, enqueuedMs: 50 }));
    backlog.observe(snapshot(9, { queuedMs: 400, enqueuedMs: 40 }));
    expect(backlog.waitMs(10)).toBeCloseTo(18);
  });

  it("lets a dispatch to another router's worker stand for what all send it, at most so many", () => {
    const first = snapshot(0, { lastSequenceSeen: 0, enqueuedMs: 4 });
    backlog.observe(first);
    // 1 of 4 is the router's own.
    expect(backlog.share).toBeCloseTo(1 / 4, 1);
    backlog.isOwned = false;
    backlog.dispatched(1, 10, 0);
    expect(backlog.waitMs(0)).toBeCloseTo(10 / 2 / backlog.share);
    const capped = known(2, { ...NO_FLOOR, shareDivisorMax: 2 });
    capped.observe(first);
    capped.isOwned = false;
    capped.dispatched(1, 10, 0);
    expect(capped.waitMs(0)).toBeCloseTo(10);
  });

  it('is at least its share of what is not acknowledged, less what is on its way, though a snapshot says nothing waits', () => {
    const floored = known(2, { ...NO_FLOOR, floor: 0.7 });
    floored.dispatched(1, 40, 0);
    floored.observe(snapshot(19, { lastSequenceSeen: 1, enqueuedMs: 41 }));
    expect(floored.waitMs(20)).toBeCloseTo(0.7 * (20 - 4));
  });

  it('adds how long the oldest dispatch is overdue, after the slack', () => {
    const watched = known(2, { ...NO_FLOOR, overdueSlackMs: 10 });
    watched.dispatched(1, 8, 0);
    // Due: 4 ms of service and 2 × 2 ms of hops.
    expect(watched.waitMs(17.9)).toBe(0);
    expect(watched.waitMs(38)).toBeCloseTo(20);
    watched.ended({ sequence: 1, sojournMs: 30, busyMs: 30 }, 40);
    expect(watched.waitMs(40)).toBe(0);
  });

  it('passes over the end of what is not outstanding', () => {
    backlog.ended({ sequence: 99, sojournMs: 1, busyMs: 1_000 }, 10);
    expect(backlog.speed).toBe(2);
  });

  it('is never negative nor NaN, and no dispatch shortens it, whatever the worker says', () => {
    const ms = fc.double({ min: 0, max: 1e4, noNaN: true });
    const step = fc.oneof(
      fc.record({ dispatch: fc.double({ min: 0.01, max: 100, noNaN: true }) }),
      fc.record({ end: fc.nat({ max: 40 }), sojournMs: ms, busyMs: ms }),
      fc.record({ queuedMs: ms, seen: fc.integer({ min: -1, max: 40 }), enqueuedMs: ms, ageMs: ms }),
    );
    const speed = fc.double({ min: 0.1, max: 8, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(step, ms), { maxLength: 60 }),
        speed,
        fc.boolean(),
        (steps, declared, isOwned) => {
          const any = new WorkerBacklog(declared, SCORE_RULES);
          any.isOwned = isOwned;
          let nowMs = 0;
          let sequence = 0;
          for (const [each, passedMs] of steps) {
            nowMs += passedMs;
            const beforeMs = any.waitMs(nowMs);
            if ('dispatch' in each) {
              any.dispatched(sequence++, each.dispatch, nowMs);
              expect(any.waitMs(nowMs)).toBeGreaterThanOrEqual(beforeMs - 1e-9);
            } else if ('end' in each) {
              any.ended({ sequence: each.end, sojournMs: each.sojournMs, busyMs: each.busyMs }, nowMs);
            } else {
              const { queuedMs, enqueuedMs } = each;
              any.observe(
                snapshot(nowMs - each.ageMs, { queuedMs, enqueuedMs, lastSequenceSeen: each.seen }),
              );
            }
            expect(any.waitMs(nowMs)).toBeGreaterThanOrEqual(0);
            expect(any.share).toBeGreaterThanOrEqual(0);
            expect(any.share).toBeLessThanOrEqual(1);
          }
        },
      ),
    );
  });
});
