import type { Cancel, Clock } from '../../ports/clock.ts';

/** Longer delays overflow Node's timers, which would then fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** The clock of this machine. Timers keep the process alive until they ran or were cancelled. */
export function systemClock(): Clock {
  return {
    wallMs,
    monotonicMs: () => performance.now(),
    after(delayMs, callback) {
      if (Number.isNaN(delayMs)) throw new RangeError('delayMs must be a number, not NaN');
      return delayMs > 0 ? afterDelay(delayMs, callback) : afterThisTurn(callback);
    },
    every(periodMs, callback) {
      if (!(periodMs > 0)) throw new RangeError(`periodMs must be greater than 0, not ${periodMs}`);
      return repeat(periodMs, callback);
    },
  };
}

/**
 * `Date.now()` with the fraction that the monotonic clock has: whole milliseconds follow the system's clock when that is set, which
 * `performance.timeOrigin + performance.now()` alone would not.
 */
function wallMs(): number {
  const steadyMs = performance.timeOrigin + performance.now();
  const systemMs = Date.now();
  const driftMs = systemMs - steadyMs;
  return driftMs > -1 && driftMs < 1 ? steadyMs : systemMs;
}

function afterThisTurn(callback: () => void): Cancel {
  const immediate = setImmediate(callback);
  return () => clearImmediate(immediate);
}

function afterDelay(delayMs: number, callback: () => void): Cancel {
  const dueMs = performance.now() + delayMs;
  let timer: NodeJS.Timeout;
  const arm = (remainingMs: number): void => {
    // A callback that took longer than its period leaves less than nothing to wait for, and Node warns of such a timer.
    timer = setTimeout(check, Math.min(Math.max(0, Math.ceil(remainingMs)), TIMER_MAX_MS));
  };
  // Node counts from its loop's rounded time, so a timer may fire up to a millisecond early: then the rest is waited for.
  const check = (): void => {
    const remainingMs = dueMs - performance.now();
    if (remainingMs > 0) arm(remainingMs);
    else callback();
  };
  arm(delayMs);
  return () => clearTimeout(timer);
}

function repeat(periodMs: number, callback: () => void): Cancel {
  let cancelled = false;
  let cancel: Cancel;
  let dueMs = performance.now() + periodMs;
  const run = (): void => {
    const nowMs = performance.now();
    // Stays on the grid of periods, and leaves out those that have passed.
    dueMs += periodMs * (Math.floor((nowMs - dueMs) / periodMs) + 1);
    callback();
    if (!cancelled) cancel = afterDelay(dueMs - performance.now(), run);
  };
  cancel = afterDelay(periodMs, run);
  return () => {
    cancelled = true;
    cancel();
  };
}
