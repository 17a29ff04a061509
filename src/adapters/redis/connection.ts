import { Redis } from 'ioredis';
import { MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://`, with user, password and database where needed. */
  url: string;
  /** How long a command may take. */
  commandTimeoutMs: number;
  clock: Clock;
  logger: Logger;
}

/**
 * A peer that is gone without a word (packets dropped, process stopped) is found by a PING each second whose answer may take 3 s: so at the
 * latest after 4 s the socket is destroyed and a new one opened.
 */
const PING_PERIOD_MS = 1_000;
const SILENCE_MAX_MS = 3_000;
const KEEP_ALIVE_MS = 5_000;
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 2_000;

/** One socket to Redis that mends itself. Nothing is queued while it is away: commands fail at once. */
export class RedisConnection {
  readonly redis: Redis;
  readonly #logger: Logger;
  readonly #stopPinging: () => void;
  /** Settled once the first attempt to connect has come to an end, one way or the other. */
  readonly #firstAttempt: Promise<void>;
  #away = false;
  #closed = false;

  constructor({ url, commandTimeoutMs, clock, logger }: RedisConnectionOptions) {
    this.#logger = logger;
    this.redis = new Redis(url, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      // Without it ioredis would subscribe again by itself, and tell nobody when that is done.
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      commandTimeout: commandTimeoutMs,
      connectTimeout: SILENCE_MAX_MS,
      socketTimeout: SILENCE_MAX_MS,
      keepAlive: KEEP_ALIVE_MS,
      retryStrategy: reconnectDelayMs,
    });
    this.redis.on('error', (error: Error) => this.#wentAway(error));
    this.redis.on('close', () => this.#wentAway(undefined));
    this.redis.on('ready', () => this.#cameBack());
    this.#firstAttempt = new Promise((resolve) => {
      const cancel = clock.after(commandTimeoutMs, resolve);
      for (const event of ['ready', 'close', 'end']) {
        this.redis.once(event, () => {
          cancel();
          resolve();
        });
      }
    });
    this.#stopPinging = clock.every(PING_PERIOD_MS, () => this.#ping());
  }

  /** @throws MillraceError STORE_UNAVAILABLE where no answer came in time. */
  async run<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
    await this.#firstAttempt;
    try {
      return await command(this.redis);
    } catch (cause) {
      throw new MillraceError('STORE_UNAVAILABLE', 'Redis did not answer', { value: message(cause), cause });
    }
  }

  close(): void {
    this.#closed = true;
    this.#stopPinging();
    this.redis.disconnect();
  }

  #ping(): void {
    if (this.redis.status !== 'ready') return;
    // A PING that fails needs no answer here: the silence that made it fail ends the socket.
    this.redis
      .ping()
      .catch((error: unknown) => this.#logger.debug({ error }, 'Redis did not answer a PING.'));
  }

  #wentAway(error: Error | undefined): void {
    if (this.#away || this.#closed) return;
    this.#away = true;
    this.#logger.warn({ error }, 'Redis is away; what is known goes on until it is back.');
  }

  #cameBack(): void {
    if (this.#away) this.#logger.info({}, 'Redis is back.');
    this.#away = false;
  }
}

/** Doubles from 50 ms to 2 s, and takes a random half of that off, so that many clients do not come back at the same moment. */
function reconnectDelayMs(attempt: number): number {
  const limitMs = Math.min(RECONNECT_MIN_MS * 2 ** Math.min(attempt - 1, 10), RECONNECT_MAX_MS);
  return limitMs * (0.5 + Math.random() / 2);
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
