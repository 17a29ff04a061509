import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PolicyPointer } from '../../../../src/ports/control-store.ts';
import { CanaryLease } from '../../../../src/stages/request-router/canary-lease.ts';
import { canaryPointer } from './policy-source.fixture.ts';

const LEASE_MS = 100;

function pointer(epoch: number, beat: number | undefined, term = 1): PolicyPointer {
  return {
    epoch,
    term,
    stable: { digest: 'd', name: 'test', version: 1 },
    canary: beat === undefined ? undefined : canaryPointer({ text: 'c', beat, leaseMs: LEASE_MS }),
  };
}

/** Epoch, beat and term as they were seen, at which time; undefined where the store had nothing. */
type Look = readonly [
  atMs: number,
  seen: readonly [epoch: number, beat: number | undefined, term?: number] | undefined,
];

describe('the lease', () => {
  it.each<{ what: string; looks: Look[]; untilMs: number }>([
    { what: 'was never begun', looks: [], untilMs: Number.NEGATIVE_INFINITY },
    { what: 'does not begin with the first look', looks: [[0, [3, 5]]], untilMs: Number.NEGATIVE_INFINITY },
    {
      what: 'begins with a beat that rose',
      looks: [
        [0, [3, 5]],
        [10, [3, 6]],
      ],
      untilMs: 110,
    },
    {
      what: 'begins with an epoch that rose, whatever its beat',
      looks: [
        [0, [3, 5]],
        [10, [4, 1]],
      ],
      untilMs: 110,
    },
    {
      what: 'does not begin with the first pointer where there was nothing before: a backup may have been restored',
      looks: [
        [0, undefined],
        [10, [1, 1]],
      ],
      untilMs: Number.NEGATIVE_INFINITY,
    },
    {
      what: 'begins with the beat after that',
      looks: [
        [0, undefined],
        [10, [1, 1]],
        [20, [1, 2]],
      ],
      untilMs: 120,
    },
    {
      what: 'goes on with the leader that took over, whatever its beat',
      looks: [
        [0, [3, 5, 1]],
        [10, [3, 6, 1]],
        [20, [3, 1, 2]],
        [30, [3, 2, 2]],
        [50, [3, 7, 1]],
      ],
      untilMs: 130,
    },
    {
      what: 'is not renewed by the same beat',
      looks: [
        [0, [3, 5]],
        [10, [3, 6]],
        [50, [3, 6]],
      ],
      untilMs: 110,
    },
    {
      what: 'is not renewed by an older epoch',
      looks: [
        [0, [3, 5]],
        [10, [4, 6]],
        [50, [3, 99]],
      ],
      untilMs: 110,
    },
    {
      what: 'is not renewed by an emptied store',
      looks: [
        [0, [3, 5]],
        [10, [3, 6]],
        [50, undefined],
      ],
      untilMs: 110,
    },
    {
      what: 'is not begun again by a store that was seeded again with the same',
      looks: [
        [0, [3, 5]],
        [10, [3, 6]],
        [200, undefined],
        [300, [3, 6]],
      ],
      untilMs: 110,
    },
    {
      what: 'ends with a pointer without a canary',
      looks: [
        [0, [3, 5]],
        [10, [3, 6]],
        [20, [4, undefined]],
      ],
      untilMs: Number.NEGATIVE_INFINITY,
    },
  ])('$what', ({ looks, untilMs }) => {
    const lease = new CanaryLease();
    for (const [atMs, seen] of looks) lease.saw(seen && pointer(...seen), atMs);
    expect(lease.untilMs).toBe(untilMs);
    expect(lease.isHeld(untilMs)).toBe(false);
    if (Number.isFinite(untilMs)) expect(lease.isHeld(untilMs - 1)).toBe(true);
  });

  it('is held only where something was seen to rise within its time, whatever is seen', () => {
    const looks = fc.array(
      fc.tuple(
        fc.nat({ max: 80 }),
        fc.option(fc.tuple(fc.nat({ max: 3 }), fc.option(fc.nat({ max: 5 }), { nil: undefined })), {
          nil: undefined,
        }),
      ),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(looks, (steps) => {
        const lease = new CanaryLease();
        let nowMs = 0;
        let highest = -1;
        let roseAtMs = Number.NEGATIVE_INFINITY;
        for (const [afterMs, seen] of steps) {
          nowMs += afterMs;
          lease.saw(seen && pointer(...seen), nowMs);
          const rank = seen === undefined ? -1 : seen[0] * 100 + (seen[1] ?? 0);
          if (rank > highest && highest >= 0) roseAtMs = nowMs;
          highest = Math.max(highest, rank);
          if (lease.isHeld(nowMs)) expect(nowMs - roseAtMs).toBeLessThan(LEASE_MS);
        }
      }),
    );
  });
});
