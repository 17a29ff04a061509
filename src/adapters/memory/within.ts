import type { Clock } from '../../ports/clock.ts';

/** Waits for `work`, but no longer than `limitMs`. @returns whether it was done in time; a rejection passes through. */
export function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => resolve(false));
    work.then(
      () => {
        cancel();
        resolve(true);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
