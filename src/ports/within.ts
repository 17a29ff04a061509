import type { Clock } from './clock.ts';

/** What `promise` settles to, or `late` where that takes longer than `limitMs`. The promise's later rejection is not reported. */
export function within<T, L>(
  timers: Pick<Clock, 'after'>,
  promise: Promise<T>,
  limitMs: number,
  late: L,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const cancel = timers.after(limitMs, () => resolve(late));
    promise.then(resolve, reject).finally(cancel);
  });
}
