import { MillraceError } from '../../core/errors.ts';
import type { RandomStream } from '../../ports/random.ts';

const FIRST_MS = 1_000;
const MOST_MS = 30_000;

/** Whether loading a version again can help. Final is what says so of itself; anything else may be of this machine, of a server, or of the way there. */
export function canPass(error: unknown): boolean {
  return !(error instanceof MillraceError) || error.retryable;
}

/**
 * How long a version that failed for a passing reason waits for its next try: twice as long after each failure, up to half a minute, drawn from the
 * upper half, so that workers which wait for one server do not ask it in step.
 * @param failures in a row, the last one among them
 */
export function tryAgainMs(failures: number, random: RandomStream): number {
  const ceilingMs = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 30));
  return ceilingMs * (0.5 + random.next() / 2);
}
