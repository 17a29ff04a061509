/** Growing waits with jitter: doubles from `firstMs` up to `mostMs`, each drawn from its upper half. */
export function backoffMs(attempt: number, firstMs: number, mostMs: number): number {
  const ceiling = Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 30));
  return ceiling * (0.5 + Math.random() / 2);
}

/** What `promise` settles to, or `late` when that takes longer than `limitMs`. The promise's later rejection is not reported. */
export function within<T, L>(promise: Promise<T>, limitMs: number, late: L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(late), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** True for the 1st, 2nd, 4th, 8th … time: how often something that happens for ever is worth a line in the log. */
export function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}
