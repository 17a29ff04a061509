import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { systemRandom } from '../../../../src/adapters/system/random.ts';

describe('systemClock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('waits for the rest where a timer fires too early', () => {
    const clock = systemClock();
    let called = false;
    let early = true;
    const realNow = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() - (early ? 0 : 0.7));
    clock.after(10, () => {
      called = true;
    });
    early = false;
    vi.advanceTimersByTime(10);
    expect(called).toBe(false);
    vi.advanceTimersByTime(1);
    expect(called).toBe(true);
  });

  it('asks Node for no negative delay where a call took longer than its period', () => {
    const clock = systemClock();
    const delays: unknown[] = [];
    const realSetTimeout = globalThis.setTimeout;
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((callback: () => void, delayMs: number) => {
      delays.push(delayMs);
      return realSetTimeout(callback, delayMs);
    }) as typeof setTimeout);
    let calls = 0;
    const cancel = clock.every(10, () => {
      calls += 1;
      vi.setSystemTime(Date.now() + 26);
      vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 26);
    });
    vi.advanceTimersByTime(100);
    cancel();
    expect(calls).toBeGreaterThan(1);
    expect(delays.filter((delay) => !(Number(delay) >= 0))).toEqual([]);
  });

  it('reaches beyond the longest timer', () => {
    const clock = systemClock();
    const daysMs = 60 * 24 * 3_600_000;
    let called = false;
    clock.after(daysMs, () => {
      called = true;
    });
    vi.advanceTimersByTime(daysMs - 10);
    expect(called).toBe(false);
    vi.advanceTimersByTime(20);
    expect(called).toBe(true);
  });

  it('makes one call for the periods that passed while the process stood still, and stays on its grid', () => {
    const clock = systemClock();
    const startMs = performance.now();
    const callsMs: number[] = [];
    let stallMs = 0;
    const realNow = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() + stallMs);
    const cancel = clock.every(10, () => callsMs.push(performance.now() - startMs));
    vi.advanceTimersByTime(25);
    stallMs = 100;
    vi.advanceTimersByTime(35);
    cancel();
    expect(callsMs).toEqual([10, 20, 130, 140, 150, 160]);
  });

  it("follows the system's clock when that is set", () => {
    const clock = systemClock();
    vi.setSystemTime(Date.UTC(2031, 5, 1));
    expect(Math.abs(clock.wallMs() - Date.UTC(2031, 5, 1))).toBeLessThan(2);
  });
});

describe('systemRandom', () => {
  it('takes a new seed each time, and tells it', () => {
    const [first, second] = [systemRandom(), systemRandom()];
    expect(Number.isSafeInteger(first.seed)).toBe(true);
    expect(first.seed).not.toBe(second.seed);
    expect(first.stream('a').next()).toBe(first.stream('a').next());
  });
});
