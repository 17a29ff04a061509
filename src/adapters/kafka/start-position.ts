import type { StartAt } from '../../ports/message-bus.ts';

/** Where to go on when what was asked for is no longer (or not yet) in the log: `earliest` loses nothing that is kept. */
export type OutOfRangePolicy = 'earliest' | 'latest';

export interface StartPosition {
  offset: number;
  reason: 'committed' | 'nothing committed' | 'out of range';
}

/**
 * Where a partition that was just assigned starts.
 *
 * @param wanted Committed offset, or the position reached before; -1 where there is none.
 * @param low First offset kept. @param high Offset that the next record gets.
 */
export function startPosition(
  wanted: number,
  { low, high }: { low: number; high: number },
  startAt: StartAt,
  outOfRange: OutOfRangePolicy,
): StartPosition {
  if (wanted < 0) return { offset: startAt === 'earliest' ? low : high, reason: 'nothing committed' };
  if (wanted >= low && wanted <= high) return { offset: wanted, reason: 'committed' };
  return { offset: outOfRange === 'earliest' ? low : high, reason: 'out of range' };
}
