import type { Clock } from '../../ports/clock.ts';

/** Growing waits with jitter: doubles from `firstMs` up to `mostMs`, each drawn from its upper half. */
export function backoffMs(attempt: number, firstMs: number, mostMs: number): number {
  const ceiling = Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 30));
  return ceiling * (0.5 + Math.random() / 2);
}

/** Timers as the client libraries have them: a cluster knows no other clock than this machine's. */
export const TIMERS: Pick<Clock, 'after'> = {
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** True for the 1st, 2nd, 4th, 8th … time: how often something that happens for ever is worth a line in the log. */
export function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}
