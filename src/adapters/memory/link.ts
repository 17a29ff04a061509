import type { Clock } from '../../ports/clock.ts';

/** What lies on the client's side of a link and wants to know that the broker can be reached again. */
export interface LinkListener {
  reconnected(): void;
}

/**
 * A client's way to the broker. Calls go through in order, each no sooner than the clock's next turn; while the way is cut they wait,
 * and once the client was killed they are dropped.
 */
export class Link {
  readonly listeners = new Set<LinkListener>();
  readonly #clock: Clock;
  #state: 'up' | 'down' | 'killed' = 'up';
  #downSinceMs = 0;
  #calls: (() => void)[] = [];
  #turnScheduled = false;

  constructor(clock: Clock, up: boolean) {
    this.#clock = clock;
    if (!up) this.cut();
  }

  get up(): boolean {
    return this.#state === 'up';
  }

  get killed(): boolean {
    return this.#state === 'killed';
  }

  /** Milliseconds since the broker was last in reach. */
  sinceUpMs(): number {
    return this.up ? 0 : this.#clock.monotonicMs() - this.#downSinceMs;
  }

  call(callback: () => void): void {
    if (this.killed) return;
    this.#calls.push(callback);
    this.#scheduleTurn();
  }

  cut(): void {
    if (this.#state !== 'up') return;
    this.#state = 'down';
    this.#downSinceMs = this.#clock.monotonicMs();
  }

  mend(): void {
    if (this.#state !== 'down') return;
    this.#state = 'up';
    this.#scheduleTurn();
    for (const listener of [...this.listeners]) listener.reconnected();
  }

  kill(): void {
    this.cut();
    this.#state = 'killed';
    this.#calls = [];
  }

  #scheduleTurn(): void {
    if (this.#turnScheduled || !this.up || this.#calls.length === 0) return;
    this.#turnScheduled = true;
    this.#clock.after(0, () => this.#turn());
  }

  #turn(): void {
    this.#turnScheduled = false;
    const calls = this.#calls;
    this.#calls = [];
    for (let i = 0; i < calls.length; i++) {
      if (!this.up) {
        // Cut by one of these very calls: the others wait, in front of whatever came meanwhile.
        if (!this.killed) this.#calls = [...calls.slice(i), ...this.#calls];
        return;
      }
      calls[i]?.();
    }
    this.#scheduleTurn();
  }
}
