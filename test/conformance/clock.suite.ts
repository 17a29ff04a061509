import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/ports/clock.ts';

/** A clock, and how the test lets its time pass. */
export interface ClockRun {
  clock: Clock;
  /** Waits until `condition` holds, with a generous bound. */
  until(condition: () => boolean): Promise<void>;
}

/** Every promise of the port `Clock`, asked of one implementation. */
export function clockConformance(name: string, create: () => ClockRun): void {
  describe(`Clock: ${name}`, () => {
    let clock: Clock;
    let until: ClockRun['until'];

    beforeEach(() => {
      ({ clock, until } = create());
    });

    it('never goes back, and shows a plausible wall time with the same pace', async () => {
      const startWallMs = clock.wallMs();
      const startMs = clock.monotonicMs();
      expect(startWallMs).toBeGreaterThan(Date.UTC(2024, 0, 1));
      let lastMs = startMs;
      let samples = 0;
      const cancel = clock.every(1, () => {
        const nowMs = clock.monotonicMs();
        expect(nowMs).toBeGreaterThanOrEqual(lastMs);
        lastMs = nowMs;
        samples++;
      });
      await until(() => samples >= 30);
      cancel();
      const wallElapsedMs = clock.wallMs() - startWallMs;
      expect(Math.abs(wallElapsedMs - (clock.monotonicMs() - startMs))).toBeLessThan(1_000);
    });

    it.each([0, 0.25, 1, 1.5, 7, 20])('calls back once, no earlier than after %d ms', async (delayMs) => {
      for (let i = 0; i < 5; i++) {
        const startMs = clock.monotonicMs();
        let calls = 0;
        let elapsedMs = -1;
        clock.after(delayMs, () => {
          calls++;
          elapsedMs = clock.monotonicMs() - startMs;
        });
        expect(calls).toBe(0);
        await until(() => calls > 0);
        expect(elapsedMs).toBeGreaterThanOrEqual(delayMs);
        let later = false;
        clock.after(30, () => {
          later = true;
        });
        await until(() => later);
        expect(calls).toBe(1);
      }
    });

    it('calls back in order, whatever the order of the calls', async () => {
      const seen: number[] = [];
      for (const delayMs of [40, 0, 80, 20]) clock.after(delayMs, () => seen.push(delayMs));
      await until(() => seen.length === 4);
      expect(seen).toEqual([0, 20, 40, 80]);
    });

    it('calls back in the order of the calls where the delay is 0, after the promises of the present turn', async () => {
      const seen: string[] = [];
      clock.after(0, () => {
        seen.push('first');
        void Promise.resolve().then(() => seen.push('promise of the first'));
      });
      clock.after(0, () => seen.push('second'));
      void Promise.resolve().then(() => seen.push('promise'));
      await until(() => seen.length === 4);
      expect(seen).toEqual(['promise', 'first', 'promise of the first', 'second']);
    });

    it('takes a delay below 0 for 0', async () => {
      const seen: string[] = [];
      clock.after(-6, () => seen.push('first'));
      clock.after(0, () => seen.push('second'));
      clock.after(Number.NEGATIVE_INFINITY, () => seen.push('third'));
      expect(seen).toEqual([]);
      await until(() => seen.length === 3);
      expect(seen).toEqual(['first', 'second', 'third']);
    });

    it('does not call back once cancelled, and bears a cancellation too many', async () => {
      const seen: string[] = [];
      const cancels = [
        clock.after(0, () => seen.push('now')),
        clock.after(5, () => seen.push('soon')),
        clock.every(5, () => seen.push('again')),
      ];
      for (const cancel of cancels) {
        cancel();
        cancel();
      }
      const cancelAfterwards = clock.after(1, () => seen.push('done'));
      await until(() => seen.length > 0);
      cancelAfterwards();
      let later = false;
      clock.after(30, () => {
        later = true;
      });
      await until(() => later);
      expect(seen).toEqual(['done']);
    });

    it('repeats until it is cancelled, also from its own callback', async () => {
      let calls = 0;
      const startMs = clock.monotonicMs();
      const cancel = clock.every(4, () => {
        calls++;
        expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(4 * calls - 0.001);
        if (calls === 5) cancel();
      });
      await until(() => calls === 5);
      let later = false;
      clock.after(40, () => {
        later = true;
      });
      await until(() => later);
      expect(calls).toBe(5);
    });

    it('waits far longer than timers reach, instead of calling at once', async () => {
      let called = false;
      const cancel = clock.after(40 * 24 * 3_600_000, () => {
        called = true;
      });
      let later = false;
      clock.after(30, () => {
        later = true;
      });
      await until(() => later);
      cancel();
      expect(called).toBe(false);
    });

    it('refuses what is no delay and no period', () => {
      expect(() => clock.after(Number.NaN, () => {})).toThrow(RangeError);
      for (const periodMs of [0, -1, Number.NaN])
        expect(() => clock.every(periodMs, () => {})).toThrow(RangeError);
    });
  });
}
