import * as v from 'valibot';
import { checkDocumentSize } from '../../core/control/document-size.ts';
import { ENVELOPE_BYTES_MAX, REVOCATIONS_BYTES_MAX } from '../../core/control/policy-envelope.ts';
import { checked } from '../../core/json-values.ts';
import type { Clock } from '../../ports/clock.ts';
import {
  type ControlStore,
  DOCUMENT_BYTES_MAX,
  type Lease,
  type PointerWrite,
  type PolicyPointer,
} from '../../ports/control-store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { RedisConnection } from './connection.ts';
import { Hints } from './hints.ts';
import { meaningOf, parsePointer, readablePointer } from './pointer-text.ts';
import {
  HOLD_LEASE,
  PUT_DOCUMENT,
  READ_REPORTS,
  RELEASE_LEASE,
  WRITE_POINTER,
  WRITE_REPORT,
} from './scripts.ts';

export interface RedisControlStoreOptions {
  /** `redis://` or `rediss://`, with user, password and database where needed. */
  url: string;
  /** In front of every key and channel; `:` separates it from the rest. */
  prefix: string;
  clock: Clock;
  telemetry: Telemetry;
  /** How long a call may wait for its answer; default 1 000. */
  commandTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 1_000;

/**
 * The control store on Redis 6.2 or newer. Keys, after the prefix: `ptr:<scope>` (hash), `pol:<sha256>` (bytes), `lease:<name>` (holder),
 * `rep:<scope>` (hash of reports); channel `hint:<scope>`. It connects in the background: a Redis that is away delays nobody's start.
 */
export function redisControlStore(options: RedisControlStoreOptions): ControlStore {
  return new RedisControlStore(options);
}

class RedisControlStore implements ControlStore {
  readonly #prefix: string;
  readonly #commands: RedisConnection;
  /** A connection that subscribes can do nothing else. */
  readonly #subscriber: RedisConnection;
  readonly #hints: Hints;

  constructor({
    url,
    prefix,
    clock,
    telemetry,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
  }: RedisControlStoreOptions) {
    const open = (purpose: string): RedisConnection =>
      new RedisConnection({
        url,
        commandTimeoutMs,
        clock,
        logger: telemetry.logger.child({ store: 'redis', purpose }),
      });
    this.#prefix = prefix;
    this.#commands = open('commands');
    this.#subscriber = open('hints');
    this.#hints = new Hints(this.#subscriber, telemetry.logger);
  }

  async readPointer(scope: string): Promise<PolicyPointer | undefined> {
    const key = this.#key('ptr', scope);
    const text = await this.#commands.run((redis) => unlessOfAnotherType('', redis.hget(key, 'pointer')));
    return text === null ? undefined : parsePointer(text);
  }

  async writePointer(scope: string, pointer: PolicyPointer): Promise<PointerWrite> {
    const current = await this.#offerPointer(scope, pointer, '');
    if (current === undefined) return { status: 'applied' };
    const readable = readablePointer(current);
    if (readable !== undefined) return { status: 'stale', current: readable };
    // Routers refuse it too: only what is in the log can take its place.
    const other = await this.#offerPointer(scope, pointer, current);
    return other === undefined ? { status: 'applied' } : { status: 'stale', current: parsePointer(other) };
  }

  /**
   * @param unreadable a stored text that is in nobody's way
   * @returns the stored pointer that is; undefined where the pointer was stored
   */
  async #offerPointer(
    scope: string,
    pointer: PolicyPointer,
    unreadable: string,
  ): Promise<string | undefined> {
    const { epoch, term, canary } = pointer;
    const current = await this.#script(
      WRITE_POINTER,
      [this.#key('ptr', scope)],
      epoch,
      term,
      // Without a canary there is nothing to renew: no beat is higher than this one.
      canary?.beat ?? Number.MAX_SAFE_INTEGER,
      meaningOf(pointer),
      JSON.stringify(pointer),
      this.#key('hint', scope),
      unreadable,
    );
    return typeof current === 'string' ? current : undefined;
  }

  async putDocument(digest: string, bytes: Uint8Array): Promise<void> {
    checkDocumentSize(digest, bytes.byteLength, DOCUMENT_BYTES_MAX);
    await this.#script(PUT_DOCUMENT, [this.#documentKey(digest)], Buffer.from(bytes));
  }

  async readDocument(digest: string): Promise<Uint8Array | undefined> {
    const key = this.#documentKey(digest);
    // One byte more than allowed tells what is too long; a range of nothing is empty as well.
    const bytes = await this.#bytes(key, DOCUMENT_BYTES_MAX);
    if (bytes.byteLength > DOCUMENT_BYTES_MAX) {
      const size = await this.#commands.run((redis) => redis.strlen(key));
      checkDocumentSize(digest, Math.max(size, bytes.byteLength), DOCUMENT_BYTES_MAX);
    }
    if (bytes.byteLength > 0) return new Uint8Array(bytes);
    return (await this.hasDocument(digest)) ? new Uint8Array(0) : undefined;
  }

  async hasDocument(digest: string): Promise<boolean> {
    return (await this.#commands.run((redis) => redis.type(this.#documentKey(digest)))) === 'string';
  }

  async putEnvelope(digest: string, bytes: Uint8Array): Promise<void> {
    await this.#commands.run((redis) => redis.set(this.#envelopeKey(digest), Buffer.from(bytes)));
  }

  async readEnvelope(digest: string): Promise<Uint8Array | undefined> {
    return this.#readUpTo(ENVELOPE_BYTES_MAX, this.#envelopeKey(digest));
  }

  async putRevocations(bytes: Uint8Array): Promise<void> {
    await this.#commands.run((redis) => redis.set(this.#revocationsKey(), Buffer.from(bytes)));
  }

  async readRevocations(): Promise<Uint8Array | undefined> {
    return this.#readUpTo(REVOCATIONS_BYTES_MAX, this.#revocationsKey());
  }

  watch(scope: string, onHint: () => void): Promise<() => Promise<void>> {
    return this.#hints.watch(this.#key('hint', scope), onHint);
  }

  async acquireLease(names: readonly string[], holder: string, ttlMs: number): Promise<Lease | undefined> {
    const hold = async (wanted: readonly string[]): Promise<string | undefined> => {
      const keys = wanted.map((name) => this.#key('lease', name));
      const place = await this.#script(HOLD_LEASE, keys, holder, ttlMs);
      return typeof place === 'number' ? wanted[place - 1] : undefined;
    };
    const name = await hold(names);
    if (name === undefined) return undefined;
    let released = false;
    return {
      name,
      holder,
      renew: async () => !released && (await hold([name])) !== undefined,
      release: async () => {
        released = true;
        await this.#script(RELEASE_LEASE, [this.#key('lease', name)], holder);
      },
    };
  }

  async report(scope: string, member: string, text: string, ttlMs: number): Promise<void> {
    await this.#script(WRITE_REPORT, [this.#key('rep', scope)], member, ttlMs, text);
  }

  async readReports(scope: string): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#script(READ_REPORTS, [this.#key('rep', scope)]);
    const flat = checked('the reports in Redis', v.array(v.string()), answer);
    const reports = new Map<string, string>();
    for (let i = 0; i + 1 < flat.length; i += 2) reports.set(flat[i] ?? '', flat[i + 1] ?? '');
    return reports;
  }

  async close(): Promise<void> {
    this.#hints.close();
    this.#commands.close();
    this.#subscriber.close();
  }

  /** One byte more than allowed tells whoever reads it that it is too long. Nobody writes an empty one. */
  async #readUpTo(bytesMax: number, key: string): Promise<Uint8Array | undefined> {
    const bytes = await this.#bytes(key, bytesMax);
    return bytes.byteLength === 0 ? undefined : new Uint8Array(bytes);
  }

  /** None of a key of another type: what is no text was lost, and whoever reads it has it written again. */
  #bytes(key: string, bytesMax: number): Promise<Buffer> {
    return this.#commands.run((redis) =>
      unlessOfAnotherType(Buffer.alloc(0), redis.getrangeBuffer(key, 0, bytesMax)),
    );
  }

  #script(
    script: string,
    keys: readonly string[],
    ...values: (string | number | Buffer)[]
  ): Promise<unknown> {
    return this.#commands.run((redis) => redis.eval(script, keys.length, ...keys, ...values));
  }

  #key(kind: 'ptr' | 'lease' | 'rep' | 'hint', name: string): string {
    return `${this.#prefix}:${kind}:${name}`;
  }

  #envelopeKey(digest: string): string {
    return `${this.#prefix}:env:${digest.replace(/^sha256:/, '')}`;
  }

  #revocationsKey(): string {
    return `${this.#prefix}:revocations`;
  }

  #documentKey(digest: string): string {
    return `${this.#prefix}:pol:${digest.replace(/^sha256:/, '')}`;
  }
}

/** Redis answers, and says that what is under the key is of another type: that is no store which is away. */
function unlessOfAnotherType<T>(other: T, reading: Promise<T>): Promise<T> {
  return reading.catch((error: unknown) => {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return other;
    throw error;
  });
}
