import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Unacknowledged } from '../../../../src/adapters/memory/unacknowledged.ts';

describe('Unacknowledged', () => {
  it('may commit exactly up to the first record that is not acknowledged, in whatever order that happens', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(gaps, fc.infiniteStream(fc.nat()), fc.nat({ max: 1_000 }), (steps, picks, start) => {
        const tracker = new Unacknowledged(start);
        const offsets: number[] = [];
        let next = start - 1;
        for (const gap of steps) {
          next += gap;
          offsets.push(next);
        }
        const delivered: number[] = [];
        const acknowledged = new Set<number>();
        for (const offset of offsets) {
          tracker.delivered(offset, offset % 7);
          delivered.push(offset);
          const pick = delivered[(picks.next().value ?? 0) % delivered.length] ?? offset;
          const before = tracker.contiguous;
          expect(tracker.acknowledge(pick)).toBe(
            acknowledged.has(pick) ? false : tracker.contiguous !== before,
          );
          acknowledged.add(pick);
          check(tracker, start, delivered, acknowledged);
        }
        for (const offset of delivered) tracker.acknowledge(offset);
        check(tracker, start, delivered, new Set(delivered));
        expect(tracker.count).toBe(0);
        expect(tracker.bytes).toBe(0);
      }),
    );
  });

  it('ignores what it was not given', () => {
    const tracker = new Unacknowledged(5);
    tracker.delivered(6, 10);
    for (const offset of [5, 7, -1, 0]) expect(tracker.acknowledge(offset)).toBe(false);
    expect([tracker.contiguous, tracker.count, tracker.bytes]).toEqual([5, 1, 10]);
  });

  it('keeps its place over long runs', () => {
    const tracker = new Unacknowledged(0);
    for (let offset = 0; offset < 10_000; offset++) {
      tracker.delivered(offset, 1);
      if (offset >= 100) tracker.acknowledge(offset - 100);
    }
    expect([tracker.contiguous, tracker.count, tracker.bytes]).toEqual([9_900, 100, 100]);
  });
});

function check(tracker: Unacknowledged, start: number, delivered: number[], acknowledged: Set<number>): void {
  const open = delivered.filter((offset) => !acknowledged.has(offset));
  const done = delivered.filter((offset) => offset < (open[0] ?? Infinity));
  const last = done[done.length - 1];
  expect(tracker.contiguous).toBe(last === undefined ? start : last + 1);
  expect(tracker.count).toBe(open.length);
  expect(tracker.bytes).toBe(open.reduce((sum, offset) => sum + (offset % 7), 0));
}
