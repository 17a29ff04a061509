import type { Logger } from '../../ports/telemetry.ts';
import type { RedisConnection } from './connection.ts';

/**
 * Pub/sub messages as hints. They are lost while the connection is away, so every watcher is hinted whenever it was made anew and
 * listens again.
 */
export class Hints {
  readonly #connection: RedisConnection;
  readonly #logger: Logger;
  readonly #watchers = new Map<string, Set<() => void>>();

  constructor(connection: RedisConnection, logger: Logger) {
    this.#connection = connection;
    this.#logger = logger;
    connection.redis.on('message', (channel: string) => this.#hint(channel));
    connection.redis.on('ready', () => this.#listenAgain());
  }

  /** @throws MillraceError STORE_UNAVAILABLE; then nothing is watched. */
  async watch(channel: string, onHint: () => void): Promise<() => Promise<void>> {
    // Its own function per watch, so that one callback may watch twice.
    const hint = (): void => onHint();
    await this.#connection.run((redis) => redis.subscribe(channel));
    const watchers = this.#watchers.get(channel) ?? new Set();
    watchers.add(hint);
    this.#watchers.set(channel, watchers);
    // What changed before the subscription stood may have been missed.
    queueMicrotask(() => {
      if (watchers.has(hint)) hint();
    });
    return () => this.#unwatch(channel, hint);
  }

  /** Hints nobody any more, whatever still arrives. */
  close(): void {
    for (const watchers of this.#watchers.values()) watchers.clear();
    this.#watchers.clear();
  }

  async #unwatch(channel: string, hint: () => void): Promise<void> {
    const watchers = this.#watchers.get(channel);
    if (watchers === undefined || !watchers.delete(hint) || watchers.size > 0) return;
    this.#watchers.delete(channel);
    if (this.#connection.redis.status !== 'ready') return;
    await this.#connection.run((redis) => redis.unsubscribe(channel));
  }

  #hint(channel: string): void {
    for (const hint of [...(this.#watchers.get(channel) ?? [])]) hint();
  }

  #listenAgain(): void {
    const channels = [...this.#watchers.keys()];
    if (channels.length === 0) return;
    this.#connection
      .run((redis) => redis.subscribe(...channels))
      .then(() => {
        for (const channel of channels) this.#hint(channel);
      })
      .catch((error: unknown) => {
        // Ready again, and yet not answering: the next connection tries anew.
        this.#logger.warn({ error, channels }, 'Redis did not take the subscriptions; reconnecting.');
        this.#connection.redis.disconnect(true);
      });
  }
}
