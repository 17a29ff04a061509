import type { MemoryConnection } from '../adapters/memory/bus.ts';
import type { Cancel, Clock } from '../ports/clock.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { Stage } from '../stages/stage.ts';

/**
 * The clock of one host: its wall clock may be wrong and may jump, its monotonic clock started at a moment of its own, and when the host dies,
 * nothing that was scheduled on it is called any more.
 */
export class HostClock implements Clock {
  readonly #base: Clock;
  readonly #bootedMs: number;
  readonly #scheduled = new Set<Cancel>();
  #skewMs = 0;
  #dead = false;

  constructor(base: Clock, bootedMs = 0) {
    this.#base = base;
    this.#bootedMs = bootedMs;
  }

  jump(byMs: number): void {
    this.#skewMs += byMs;
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
    return this.#bootedMs + this.#base.monotonicMs();
  }

  after(delayMs: number, callback: () => void): Cancel {
    if (this.#dead) return () => {};
    const cancelled: Cancel = () => {
      cancel();
      this.#scheduled.delete(cancelled);
    };
    const cancel = this.#base.after(delayMs, () => {
      this.#scheduled.delete(cancelled);
      callback();
    });
    this.#scheduled.add(cancelled);
    return cancelled;
  }

  every(periodMs: number, callback: () => void): Cancel {
    if (this.#dead) return () => {};
    const cancel = this.#base.every(periodMs, callback);
    const cancelled: Cancel = () => {
      cancel();
      this.#scheduled.delete(cancelled);
    };
    this.#scheduled.add(cancelled);
    return cancelled;
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
