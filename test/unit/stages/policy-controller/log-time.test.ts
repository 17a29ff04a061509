import { describe, expect, it } from 'vitest';
import { LogTime } from '../../../../src/stages/policy-controller/log-time.ts';

function began(appendedMs: number) {
  const clock = { nowMs: 500, monotonicMs: () => clock.nowMs };
  const time = new LogTime(clock);
  time.begin(appendedMs);
  return { clock, time };
}

describe('the time in the log', () => {
  it('begins at the append time, and goes on by the monotonic clock', () => {
    const { clock, time } = began(1_000_000);
    expect(time.nowMs()).toBe(1_000_000);
    clock.nowMs += 250.4;
    expect(time.nowMs()).toBe(1_000_250);
  });

  it.each([
    { what: 'far ahead', lastMs: 5_000_000, expected: 5_000_100 },
    { what: 'a little ahead', lastMs: 1_000_250, expected: 1_000_350 },
    { what: 'as late', lastMs: 1_000_200, expected: 1_000_300 },
    { what: 'behind', lastMs: 900_000, expected: 1_000_300 },
    { what: 'none yet', lastMs: 0, expected: 1_000_300 },
  ])('goes on from the latest that the log has, where that is later: $what', ({ lastMs, expected }) => {
    const { clock, time } = began(1_000_000);
    // Reading the log took a while.
    clock.nowMs += 200;
    time.reach(lastMs);
    clock.nowMs += 100;
    expect(time.nowMs()).toBe(expected);
  });

  it('begins anew with each leadership', () => {
    const { clock, time } = began(1_000_000);
    time.reach(9_000_000);
    clock.nowMs += 1_000;
    time.begin(2_000_000);
    expect(time.nowMs()).toBe(2_000_000);
  });
});
