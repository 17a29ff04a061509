import type { Clock } from '../../ports/clock.ts';

/**
 * The time in the log of events: ms since the epoch, and never back. A leader begins at the broker's append time of the record by which it took the
 * lead, or at the log's latest where that is later, and goes on by its monotonic clock. So the wall clock of a controller, which may be wrong by
 * hours or jump, ends no hold and no dwell time: all leaders count by one clock, the broker's.
 */
export class LogTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #beganMs = 0;
  #beganMonotonicMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** @param appendedMs when the broker appended what was read just now */
  begin(appendedMs: number): void {
    this.#beganMs = appendedMs;
    this.#beganMonotonicMs = this.#clock.monotonicMs();
  }

  /** @param lastMs the latest time in the log: from now on it is no earlier than that */
  reach(lastMs: number): void {
    const behindMs = lastMs - this.nowMs();
    if (behindMs > 0) this.#beganMs += behindMs;
  }

  nowMs(): number {
    return Math.round(this.#beganMs + this.#clock.monotonicMs() - this.#beganMonotonicMs);
  }
}
