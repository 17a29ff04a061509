import { MillraceError } from '../core/errors.ts';
import type { Cancel, Clock } from '../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../ports/control-store.ts';
import type { RandomStream } from '../ports/random.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface PointerFollowerOptions {
  store: ControlStore;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Whose pointer is followed. */
  scope: string;
  /**
   * What the store says now, each time that it was asked; one call at a time.
   * @param askedAtMs when, by the monotonic clock
   */
  take(pointer: PolicyPointer | undefined, askedAtMs: number): Promise<void>;
  /** The pointer is no pointer, or `take` threw. */
  unreadable(error: unknown): Promise<void>;
}

/** So often it is asked, at least. */
export const POLL_MS = 1_000;
/** A poll comes so much earlier or later at random, so that processes that started together do not ask together. */
const POLL_JITTER = 0.2;

/**
 * Reads a pointer at every hint and, as hints can be lost, each second, give or take 20 %. A store that is away is asked again; whatever it said
 * before stays.
 */
export class PointerFollower {
  readonly #options: PointerFollowerOptions;
  #reading: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #watching = false;
  #unwatch: (() => Promise<void>) | undefined;
  #cancelPoll: Cancel | undefined;

  constructor(options: PointerFollowerOptions) {
    this.#options = options;
  }

  /** Asks at once, and from then on. Resolves when the store was asked once, whatever it said. */
  start(): Promise<void> {
    this.#pollAfter(this.#nextPollMs());
    return this.#ask();
  }

  /** Asks at some moment of the next second, and from then on: of many that start together, few ask together. */
  startSometime(): void {
    this.#pollAfter(POLL_MS * (1 + POLL_JITTER) * this.#options.random.next());
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await this.#unwatch?.();
  }

  #nextPollMs(): number {
    return POLL_MS * (1 - POLL_JITTER + 2 * POLL_JITTER * this.#options.random.next());
  }

  #pollAfter(delayMs: number): void {
    this.#cancelPoll = this.#options.clock.after(delayMs, () => {
      void this.#ask();
      this.#pollAfter(this.#nextPollMs());
    });
  }

  /** Sees to it that hints come, and reads. */
  async #ask(): Promise<void> {
    if (!this.#watching) await this.#watch();
    if (!this.#closed) await this.#read();
  }

  async #watch(): Promise<void> {
    const { store, scope, telemetry } = this.#options;
    this.#watching = true;
    // The first one says that the watch stands: whoever asked for it reads right after anyway.
    let isFirst = true;
    const onHint = (): void => {
      if (!isFirst) void this.#read();
      isFirst = false;
    };
    try {
      const unwatch = await store.watch(scope, onHint);
      if (this.#closed) await unwatch();
      else this.#unwatch = unwatch;
    } catch (error) {
      this.#watching = false;
      telemetry.logger.debug(
        { scope, error: String(error) },
        'no hints of the control store yet; polling goes on',
      );
    }
  }

  /** One reading at a time, however many hints come; those that come meanwhile are answered by one more. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#readUntilQuiet();
    return this.#reading;
  }

  async #readUntilQuiet(): Promise<void> {
    try {
      do {
        this.#again = false;
        await this.#readOnce();
      } while (this.#again && !this.#closed);
    } finally {
      this.#reading = undefined;
    }
  }

  async #readOnce(): Promise<void> {
    const { store, clock, scope, telemetry, take } = this.#options;
    try {
      const askedAtMs = clock.monotonicMs();
      const pointer = await store.readPointer(scope);
      if (!this.#closed) await take(pointer, askedAtMs);
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'STORE_UNAVAILABLE')
        telemetry.logger.debug(
          { scope, error: error.message },
          'the control store does not answer; what is in force stays',
        );
      else if (!this.#closed) await this.#tellUnreadable(error);
    }
  }

  /** Whatever comes of telling it, the next reading comes. */
  async #tellUnreadable(error: unknown): Promise<void> {
    const { scope, telemetry, unreadable } = this.#options;
    try {
      await unreadable(error);
    } catch (failure) {
      telemetry.logger.error(
        { scope, error: String(error), failure: String(failure) },
        'a pointer could not be read, and that could not be reported',
      );
    }
  }
}
