import type { Clock } from '../../ports/clock.ts';

/**
 * The time in the log of events: ms since the epoch, and never back. A leader begins at the wall clock's time, or at the log's latest where that
 * is later, and goes on by its monotonic clock: a wall clock that jumps changes neither dwell times nor holds.
 */
export class LogTime {
  readonly #clock: Clock;
  #beganMs = 0;
  #beganMonotonicMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param lastMs the latest time in the log */
  begin(lastMs: number): void {
    this.#beganMs = Math.max(this.#clock.wallMs(), lastMs);
    this.#beganMonotonicMs = this.#clock.monotonicMs();
  }

  nowMs(): number {
    return Math.round(this.#beganMs + this.#clock.monotonicMs() - this.#beganMonotonicMs);
  }
}
