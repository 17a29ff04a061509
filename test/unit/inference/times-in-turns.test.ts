import { describe, expect, it } from 'vitest';
import { timesInTurns } from '../../../src/inference/times-in-turns.ts';

/** A clock that calls move on, and what was called, by its number. */
function machine() {
  let nowMs = 0;
  const called: number[] = [];
  return {
    called,
    clock: { monotonicMs: () => nowMs },
    /** @param took of each run of it, in turn; the last one goes on */
    call(n: number, ...took: readonly [number, ...number[]]): () => Promise<number> {
      let run = 0;
      return async () => {
        const ms = took[Math.min(run, took.length - 1)] ?? 0;
        run += 1;
        nowMs += ms;
        called.push(n);
        return ms;
      };
    },
  };
}

describe('times in turns', () => {
  it('go over all calls in each round, and warm each up before', async () => {
    const { clock, call, called } = machine();
    const { rounds, runs } = await timesInTurns([call(0, 1), call(1, 1)], { clock, measureMs: 2 });
    expect({ rounds, runs }).toEqual({ rounds: 1, runs: 1 });
    // Once to see how long a pass takes; then each to warm up, and to measure.
    expect(called).toEqual([0, 1, 0, 0, 1, 1]);
  });

  it('are the median of a round, in the fastest round', async () => {
    const { clock, call } = machine();
    const firstPass = [1] as const;
    const slow = [99, 7, 9, 8, 9, 8];
    const fast = [99, 3, 5, 1, 4, 90];
    // The fastest round is neither the first nor the last.
    const taken = call(0, ...firstPass, ...slow, ...fast, 99, 20, 20, 20, 20, 20);
    const { times, rounds, runs } = await timesInTurns([taken], { clock, measureMs: 400 });
    expect(runs).toBe(5);
    expect(rounds).toBeGreaterThanOrEqual(3);
    expect(times).toEqual([4]);
  });

  it('take about as long as they may', async () => {
    const { clock, call } = machine();
    const calls = [call(0, 1), call(1, 2), call(2, 3)];
    await timesInTurns(calls, { clock, measureMs: 60 });
    const round = 6 * 6;
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60);
    expect(clock.monotonicMs()).toBeLessThanOrEqual(6 + 60 + round);
  });

  it('measure each call once, however little time there is', async () => {
    const { clock, call } = machine();
    const { times, rounds, runs } = await timesInTurns([call(0, 500)], { clock, measureMs: 1 });
    expect({ times, rounds, runs }).toEqual({ times: [500], rounds: 1, runs: 1 });
  });

  it.each([0, 100])(
    'end where the clock tells no two moments apart (%i ms to measure)',
    async (measureMs) => {
      const calls = [async () => 0.25];
      const measured = await timesInTurns(calls, { clock: { monotonicMs: () => 7 }, measureMs });
      expect(measured.times).toEqual([0.25]);
    },
  );

  it('fail as a call fails', async () => {
    const calls = [() => Promise.reject(new Error('no such id'))];
    await expect(timesInTurns(calls, { clock: { monotonicMs: () => 0 }, measureMs: 1 })).rejects.toThrow(
      'no such id',
    );
  });
});
