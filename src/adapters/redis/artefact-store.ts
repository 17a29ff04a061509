import { Buffer } from 'node:buffer';
import type { ChainableCommander } from 'ioredis';
import { MillraceError } from '../../core/errors.ts';
import {
  type ArtefactEntry,
  type ArtefactStore,
  checkGet,
  checkPut,
  type StoredArtefact,
} from '../../ports/artefact-store.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { RedisConnection } from './connection.ts';

export interface RedisArtefactStoreOptions {
  /** `redis://` or `rediss://`, with user, password and database where needed. */
  url: string;
  /** In front of every key; `:` separates it from the rest. */
  prefix: string;
  clock: Clock;
  telemetry: Telemetry;
  /** Bytes that may be under way at once, counted as the most that can come; default 64 MiB. */
  bytesMax?: number;
}

const BYTES_MAX = 64 * 1024 * 1024;
/** A command that is not answered by then frees its place; nobody waits as long. */
const COMMAND_TIMEOUT_MS = 1_000;

type Replies = NonNullable<Awaited<ReturnType<ChainableCommander['exec']>>>;

/**
 * Artefacts in Redis, each a text of its own, `<prefix>:art:<key>`, with its time to live. It connects in the background: a Redis that is away delays
 * nobody's start. How much is kept in all is the server's own setting (`maxmemory`, and a policy that evicts).
 */
export function redisArtefactStore(options: RedisArtefactStoreOptions): ArtefactStore {
  return new RedisArtefactStore(options);
}

class RedisArtefactStore implements ArtefactStore {
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #connection: RedisConnection;
  readonly #bytesMax: number;
  #bytesUnderWay = 0;

  constructor({ url, prefix, clock, telemetry, bytesMax = BYTES_MAX }: RedisArtefactStoreOptions) {
    this.#prefix = prefix;
    this.#clock = clock;
    this.#bytesMax = bytesMax;
    const logger = telemetry.logger.child({ store: 'redis', purpose: 'artefacts' });
    this.#connection = new RedisConnection({ url, commandTimeoutMs: COMMAND_TIMEOUT_MS, clock, logger });
  }

  async getMany(keys: readonly string[], bytesMax: number, limitMs: number): Promise<StoredArtefact[]> {
    checkGet(keys, bytesMax);
    // One byte more than allowed tells what is too long, and no more of it comes.
    const replies = await this.#run(keys.length * (bytesMax + 1), limitMs, (pipeline) => {
      for (const key of keys) pipeline.getrangeBuffer(this.#key(key), 0, bytesMax);
    });
    return replies.map((reply) => storedOf(reply, bytesMax));
  }

  async putMany(entries: readonly ArtefactEntry[], ttlMs: number, limitMs: number): Promise<void> {
    checkPut(entries, ttlMs);
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes.byteLength, 0);
    const replies = await this.#run(bytes, limitMs, (pipeline) => {
      for (const entry of entries) pipeline.set(this.#key(entry.key), Buffer.from(entry.bytes), 'PX', ttlMs);
    });
    for (const [error] of replies) if (error !== null) throw refused('keep', error);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** Its bytes stay under way until Redis answered or the connection is given up, whoever waits for them. */
  async #run(bytes: number, limitMs: number, fill: (pipeline: ChainableCommander) => void): Promise<Replies> {
    if (bytes === 0) return [];
    if (this.#bytesUnderWay + bytes > this.#bytesMax)
      throw new MillraceError('STORE_UNAVAILABLE', 'too many bytes of artefacts are under way at once', {
        value: this.#bytesUnderWay + bytes,
        allowed: `at most ${this.#bytesMax}`,
      });
    this.#bytesUnderWay += bytes;
    const answer = this.#connection
      .run(async (redis) => {
        const pipeline = redis.pipeline();
        fill(pipeline);
        return (await pipeline.exec()) ?? [];
      })
      .finally(() => {
        this.#bytesUnderWay -= bytes;
      });
    const late = Symbol('late');
    const replies = await within(this.#clock, answer, limitMs, late);
    if (typeof replies === 'symbol')
      throw new MillraceError('STORE_UNAVAILABLE', `Redis did not answer within ${limitMs} ms`);
    return replies;
  }

  #key(key: string): string {
    return `${this.#prefix}:art:${key}`;
  }
}

function storedOf([error, reply]: Replies[number], bytesMax: number): StoredArtefact {
  if (error?.message.startsWith('WRONGTYPE')) return { state: 'no-bytes' };
  if (error !== null) throw refused('read', error);
  // A key that is not there has an empty range, and no artefact is empty.
  if (!Buffer.isBuffer(reply) || reply.length === 0) return { state: 'missing' };
  return reply.length > bytesMax ? { state: 'too-long' } : { state: 'found', bytes: reply };
}

function refused(toDo: string, error: Error): MillraceError {
  return new MillraceError('STORE_UNAVAILABLE', `Redis refused to ${toDo} artefacts`, {
    value: error.message,
    cause: error,
  });
}
