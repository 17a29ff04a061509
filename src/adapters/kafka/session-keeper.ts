import type { Logger } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { backoffMs, TIMERS } from './backoff.ts';
import type { Session } from './client.ts';

const RESTART_FIRST_MS = 250;
const RESTART_MOST_MS = 3_000;
/** A session that lived so long was sound: the next restart does not wait as if it were the umpteenth. */
const SOUND_AFTER_MS = 30_000;
const WATCH_INTERVAL_MS = 1_000;
const CLOSE_TIMEOUT_MS = 3_000;

export interface SessionKeeperOptions {
  open(): Promise<Session>;
  /** Called when a session is over, before the next one is opened. */
  onOver(error: unknown): void;
  /** A session without contact for so long is given up: clients have been seen to stay down for ever. */
  staleMs: number;
  logger: Logger;
}

/** Keeps one session open: opens the next one when it crashes or falls silent, for ever, with growing waits. */
export class SessionKeeper {
  readonly #options: SessionKeeperOptions;
  /** Sessions that crashed before `open` handed them over. */
  readonly #crashedEarly = new WeakMap<Session, unknown>();
  #session: Session | undefined;
  #closed = false;
  #failures = 0;
  #openedAt = 0;
  /** Of the last session with the broker. */
  #contactAt = performance.now();
  #wake: () => void = () => undefined;
  #restarting: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: SessionKeeperOptions) {
    this.#options = options;
  }

  get session(): Session | undefined {
    return this.#session;
  }

  /** Opens the first session. Tries for ever, unless closed. */
  async start(): Promise<void> {
    this.#watch = setInterval(() => this.#giveUpIfStale(), WATCH_INTERVAL_MS);
    this.#watch.unref();
    await this.#openForEver();
  }

  /** To be called by whoever hears that a session crashed. */
  over(session: Session, error: unknown): void {
    if (session !== this.#session) {
      this.#crashedEarly.set(session, error);
      return;
    }
    this.#session = undefined;
    this.#contactAt = performance.now() - session.sinceContactMs();
    if (performance.now() - this.#openedAt > SOUND_AFTER_MS) this.#failures = 0;
    this.#options.onOver(error);
    if (this.#closed) return;
    this.#restarting = this.#waitThenOpen();
  }

  sinceContactMs(): number {
    return this.#session?.sinceContactMs() ?? performance.now() - this.#contactAt;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    this.#wake();
    await within(TIMERS, this.#restarting ?? Promise.resolve(), CLOSE_TIMEOUT_MS, undefined);
    const session = this.#session;
    this.#session = undefined;
    if (session !== undefined) await this.#closeSession(session);
  }

  async #openForEver(): Promise<void> {
    while (!this.#closed) {
      try {
        const session = await this.#options.open();
        if (this.#closed) return await this.#closeSession(session);
        if (this.#crashedEarly.has(session)) throw this.#crashedEarly.get(session);
        this.#session = session;
        this.#openedAt = performance.now();
        return;
      } catch (error) {
        this.#options.onOver(error);
        await this.#pause();
      }
    }
  }

  async #waitThenOpen(): Promise<void> {
    await this.#pause();
    await this.#openForEver();
  }

  async #pause(): Promise<void> {
    if (this.#closed) return;
    const waitMs = backoffMs(this.#failures++, RESTART_FIRST_MS, RESTART_MOST_MS);
    this.#options.logger.warn(
      { waitMs: Math.round(waitMs), failures: this.#failures },
      'the consumer is started again',
    );
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #giveUpIfStale(): void {
    const session = this.#session;
    if (session === undefined || session.sinceContactMs() < this.#options.staleMs) return;
    this.over(session, new Error(`no answer from the broker for ${Math.round(session.sinceContactMs())} ms`));
    void this.#closeSession(session);
  }

  async #closeSession(session: Session): Promise<void> {
    const closed = session.close().catch((error: unknown) => {
      this.#options.logger.warn({ error }, 'closing a consumer failed');
    });
    await within(TIMERS, closed, CLOSE_TIMEOUT_MS, undefined);
  }
}
