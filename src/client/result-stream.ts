import type { ScoredResult } from '../contracts/records.ts';
import { createFirstResultFilter } from '../core/outcome/first-result-filter.ts';
import { answerKey } from '../core/outcome/identity.ts';
import type { StartAt, Subscription } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';
import { Inbox } from './inbox.ts';
import { readResult, type UnreadableResult } from './read-result.ts';

export interface ResultsOptions {
  /** Consumer group that shares the results; a group of its own where absent. */
  group?: string;
  /** Where to start when the group has committed nothing: `latest` (default) gets what is appended once the stream is ready. */
  startAt?: StartAt;
  /** Results of one partition kept ready for the reader, 1 000 by default; the bus waits while so many are. */
  bufferMax?: number;
  /** Ends the stream. */
  signal?: AbortSignal;
  /** Told of each record that cannot be read, before it is passed over. What it throws ends the stream, and the record comes again. */
  onUnreadable?(unreadable: UnreadableResult): void;
}

/** A result with where it lies on scored-results. */
export interface ReceivedResult {
  result: ScoredResult;
  partition: number;
  offset: number;
  /** Counts the result as consumed at once, for a reader that is about to leave the loop; otherwise asking for the next one does. */
  acknowledge(): void;
}

export interface ResultStream extends AsyncIterableIterator<ReceivedResult, void, void>, AsyncDisposable {
  /** Resolves once the stream is open: no result that is appended from then on is missed. */
  readonly ready: Promise<void>;
  return(): Promise<IteratorResult<ReceivedResult, void>>;
}

const IDENTITIES_MAX = 200_000;
const BUFFER_MAX = 1_000;

/**
 * Results as they come, the first per identity only: a second result of a crash or a hedge is dropped. Opens at once, not with the first
 * `next()`. A result counts as consumed, and is committed, when the reader asks for the next one or acknowledges it. Ends when the signal
 * aborts, the loop is left or the client is closed; what was not consumed then comes again to its group.
 */
export function resultStream(
  connection: Connection,
  options: ResultsOptions = {},
  onClosed: () => void = () => undefined,
): ResultStream {
  return new OpenStream(connection, options, onClosed);
}

class OpenStream implements ResultStream {
  readonly ready: Promise<void>;
  readonly #connection: Connection;
  readonly #options: ResultsOptions;
  readonly #onClosed: () => void;
  readonly #inbox = new Inbox();
  readonly #subscription: Promise<Subscription | undefined>;
  readonly #results: AsyncGenerator<ReceivedResult, void, void>;
  readonly #abort = (): void => {
    this.#closeLogged();
  };
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, options: ResultsOptions, onClosed: () => void) {
    this.#connection = connection;
    this.#options = options;
    this.#onClosed = onClosed;
    this.#subscription = this.#open();
    this.ready = this.#subscription.then(() => undefined);
    // Whoever does not wait for `ready` is told by `next`.
    this.ready.catch(() => undefined);
    this.#results = this.#firstResults();
  }

  next(): Promise<IteratorResult<ReceivedResult, void>> {
    return this.#results.next();
  }

  async return(): Promise<IteratorResult<ReceivedResult, void>> {
    await this.#close();
    return this.#results.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #open(): Promise<Subscription | undefined> {
    const { signal, group, startAt = 'latest', bufferMax = BUFFER_MAX } = this.#options;
    if (signal?.aborted) {
      this.#inbox.end();
      return undefined;
    }
    signal?.addEventListener('abort', this.#abort, { once: true });
    const { bus, topics, telemetry } = this.#connection;
    return bus.subscribe(
      {
        group: group ?? `${topics.prefix}.results.${this.#connection.newId()}`,
        topics: [topics.fixed('scored-results')],
        startAt,
        unacknowledgedMax: bufferMax,
      },
      {
        onRecords: (records) => this.#inbox.push(records),
        onRevoked: async (partitions) => this.#inbox.discard(partitions),
        onLost: (partitions) => this.#inbox.discard(partitions),
        onError: (error) => telemetry.logger.warn({ error }, 'the results are read again after a fault'),
      },
    );
  }

  async *#firstResults(): AsyncGenerator<ReceivedResult, void, void> {
    const isFirst = createFirstResultFilter({ identitiesMax: IDENTITIES_MAX });
    const isOpen = (): boolean => this.#closing === undefined;
    try {
      const subscription = await this.#subscription;
      if (subscription === undefined) return;
      for (let record = await this.#inbox.next(); record !== undefined; record = await this.#inbox.next()) {
        const { partition, offset } = record;
        const acknowledge = once(subscription.acknowledge.bind(subscription, record));
        const read = await readResult(this.#connection, record, isOpen);
        if (read.status === 'unwanted') return;
        if (read.status === 'unreadable') this.#options.onUnreadable?.(read.unreadable);
        else if (isFirst(answerKey(read.result)))
          yield { result: read.result, partition, offset, acknowledge };
        acknowledge();
      }
    } finally {
      await this.#close();
    }
  }

  #close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.#inbox.end();
    // A subscription that could not be opened is told by `ready` and `next`; there is nothing to close.
    const subscription = await this.#subscription.catch(() => undefined);
    await subscription?.close();
    this.#onClosed();
  }

  /** The end that an abort asks for: nobody awaits it, so a fault is logged. */
  #closeLogged(): void {
    this.#close().catch((error: unknown) =>
      this.#connection.telemetry.logger.warn({ error }, 'the stream of results could not be closed'),
    );
  }
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
