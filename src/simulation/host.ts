import type { MemoryConnection } from '../adapters/memory/bus.ts';
import type { Cancel, Clock } from '../ports/clock.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { Stage } from '../stages/stage.ts';

/** Times are sums in floating point. */
const ROUNDING_MS = 0.001;

/**
 * The clock of one host: its wall clock may be wrong and may jump, its monotonic clock started at a moment of its own and may run faster or slower
 * than time does, and when the host dies, nothing that was scheduled on it is called any more.
 */
export class HostClock implements Clock {
  readonly #base: Clock;
  readonly #scheduled = new Set<Cancel>();
  #skewMs = 0;
  /** Own ms that pass in a ms of the base's, since the own clock stood at `#sinceOwnMs`. */
  #rate = 1;
  #sinceMs = 0;
  #sinceOwnMs: number;
  #dead = false;

  constructor(base: Clock, bootedMs = 0) {
    this.#base = base;
    this.#sinceOwnMs = bootedMs;
  }

  jump(byMs: number): void {
    this.#skewMs += byMs;
  }

  /** From now on the monotonic clock runs at this rate; timers go by it. */
  drift(rate: number): void {
    this.#sinceOwnMs = this.monotonicMs();
    this.#sinceMs = this.#base.monotonicMs();
    this.#rate = rate;
  }

  die(): void {
    this.#dead = true;
    for (const cancel of this.#scheduled) cancel();
    this.#scheduled.clear();
  }

  wallMs(): number {
    return this.#base.wallMs() + this.#skewMs;
  }

  monotonicMs(): number {
    return this.#sinceOwnMs + (this.#base.monotonicMs() - this.#sinceMs) * this.#rate;
  }

  after(delayMs: number, callback: () => void): Cancel {
    if (this.#dead) return () => {};
    const dueMs = this.monotonicMs() + Math.max(0, delayMs);
    let cancel: Cancel;
    const cancelled: Cancel = () => {
      cancel();
      this.#scheduled.delete(cancelled);
    };
    const run = (): void => {
      const leftMs = dueMs - this.monotonicMs();
      // Since it was scheduled the clock has slowed down.
      if (leftMs > ROUNDING_MS) {
        cancel = this.#base.after(leftMs / this.#rate, run);
        return;
      }
      this.#scheduled.delete(cancelled);
      callback();
    };
    cancel = this.#base.after(delayMs / this.#rate, run);
    this.#scheduled.add(cancelled);
    return cancelled;
  }

  every(periodMs: number, callback: () => void): Cancel {
    if (!(periodMs > 0)) throw new RangeError(`periodMs must be greater than 0, not ${periodMs}`);
    let cancel: Cancel;
    let isCancelled = false;
    const run = (): void => {
      callback();
      if (!isCancelled) cancel = this.after(periodMs, run);
    };
    cancel = this.after(periodMs, run);
    return () => {
      isCancelled = true;
      cancel();
    };
  }
}

/** A process on a machine of its own. */
export interface Host<S extends Stage = Stage> {
  readonly name: string;
  readonly clock: HostClock;
  readonly bus: MemoryConnection;
  /** The same behind the network: what its stage talks to. */
  readonly network: MessageBus;
  /** Undefined until it has started. */
  stage: S | undefined;
  state: 'up' | 'crashed' | 'closed';
}
