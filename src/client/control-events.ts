import { schemaOf } from '../contracts/headers.ts';
import type { ControlEvent } from '../contracts/records.ts';
import { TermFence } from '../core/control/fence.ts';
import { coversScope } from '../core/control/key-ring.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';

export interface ControlEventsOptions {
  /** Only events of this scope: `policy/starter`, or `policy/*` for all that begin so. All where absent. */
  scope?: string;
  /** From the first event that is kept; otherwise what is decided once the stream is ready. */
  fromStart?: boolean;
  /** Events kept ready for the reader, 1 000 by default, and one fetch more; the bus waits while so many are. */
  bufferMax?: number;
  /** False ends the stream when everything that was there at its start was read; true by default. */
  follow?: boolean;
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** An event as it stands in the log. */
export interface LoggedEvent extends ControlEvent {
  /**
   * It counts for nothing: a leader that was replaced still got it into the log behind what the next one wrote. A stream that does not begin with the
   * first event knows the leaders that wrote since it began.
   */
  isVoid: boolean;
}

export interface ControlEventStream extends AsyncIterableIterator<LoggedEvent, void, void>, AsyncDisposable {
  /** Resolves once the stream is open: no event that is appended from then on is missed. */
  readonly ready: Promise<void>;
  return(): Promise<IteratorResult<LoggedEvent, void>>;
}

const RETRY_MS = 500;
const BUFFER_MAX = 1_000;

/**
 * What the controller decided, in order. Reads the single partition without a group: every reader sees everything, and commits nothing. While the
 * reader has not read what is ready for it, nothing more is fetched. A record that cannot be read is logged and passed over.
 */
export function controlEvents(
  connection: Connection,
  options: ControlEventsOptions = {},
  onClosed: () => void = () => undefined,
): ControlEventStream {
  return new OpenEvents(connection, options, onClosed);
}

class OpenEvents implements ControlEventStream {
  readonly ready: Promise<void>;
  readonly #connection: Connection;
  readonly #options: ControlEventsOptions;
  readonly #onClosed: () => void;
  readonly #reader: Promise<Reader | undefined>;
  readonly #events: AsyncGenerator<LoggedEvent, void, void>;
  readonly #abort = (): void => {
    this.#close().catch((error: unknown) =>
      this.#connection.telemetry.logger.warn({ error }, 'the stream of control events could not be closed'),
    );
  };
  readonly #fence = new TermFence();
  #records: InboundRecord[] = [];
  /** Of those that were handed over together, how many are not read yet. */
  #unread = 0;
  #openReader: Reader | undefined;
  #wake: () => void = () => undefined;
  #isComplete = false;
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, options: ControlEventsOptions, onClosed: () => void) {
    this.#connection = connection;
    this.#options = options;
    this.#onClosed = onClosed;
    this.#reader = this.#open();
    this.ready = this.#reader.then(() => undefined);
    // Whoever does not wait for `ready` is told by `next`.
    this.ready.catch(() => undefined);
    this.#events = this.#decoded();
  }

  next(): Promise<IteratorResult<LoggedEvent, void>> {
    return this.#events.next();
  }

  async return(): Promise<IteratorResult<LoggedEvent, void>> {
    await this.#close();
    return this.#events.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #open(): Promise<Reader | undefined> {
    const { signal, fromStart = false, follow = true } = this.#options;
    if (signal?.aborted === true) return undefined;
    signal?.addEventListener('abort', this.#abort, { once: true });
    const { bus, topics } = this.#connection;
    const reader = await bus.read(
      { topics: [topics.fixed('control-events')], startAt: fromStart ? 'earliest' : 'latest' },
      (records) => {
        for (const record of records) this.#records.push(record);
        this.#regulate();
        this.#wake();
      },
    );
    this.#openReader = reader;
    this.#regulate();
    if (!follow) this.#completeAfter(reader.caughtUp);
    return reader;
  }

  /** Between full and half full nothing changes, so that not every event asks for another fetch. */
  #regulate(): void {
    const { bufferMax = BUFFER_MAX } = this.#options;
    const ready = this.#records.length + this.#unread;
    if (ready >= bufferMax) this.#openReader?.pause();
    else if (ready <= bufferMax / 2) this.#openReader?.resume();
  }

  #completeAfter(caughtUp: Promise<void>): void {
    caughtUp
      .catch((error: unknown) =>
        this.#connection.telemetry.logger.warn(
          { error },
          'the control events could not be read to their end',
        ),
      )
      .finally(() => {
        this.#isComplete = true;
        this.#wake();
      });
  }

  async *#decoded(): AsyncGenerator<LoggedEvent, void, void> {
    const { scope } = this.#options;
    try {
      if ((await this.#reader) === undefined) return;
      for (;;) {
        const batch = this.#records;
        this.#records = [];
        this.#unread = batch.length;
        for (const record of batch) {
          const event = await this.#decode(record);
          if (this.#closing !== undefined) return;
          this.#unread -= 1;
          this.#regulate();
          if (event === undefined) continue;
          // Whatever its scope: a leader leads all of them.
          const isVoid = !this.#fence.admits(event);
          if (scope === undefined || coversScope([scope], event.scope)) yield { ...event, isVoid };
        }
        if (this.#closing !== undefined) return;
        if (this.#records.length === 0) {
          if (this.#isComplete) return;
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      await this.#close();
    }
  }

  /** While the registry is away a record of an unknown schema waits. */
  async #decode(record: InboundRecord): Promise<ControlEvent | undefined> {
    const { codecs, clock, telemetry } = this.#connection;
    const codec = codecs.for('ControlEvent');
    while (this.#closing === undefined) {
      const decoded = codec.decode(record.value, schemaOf(record.headers));
      if (decoded.status === 'ok') return decoded.value;
      if (decoded.status === 'unreadable') {
        const { code, message } = decoded;
        telemetry.logger.error(
          { offset: record.offset, code, reason: message },
          'a control event cannot be read',
        );
        return undefined;
      }
      try {
        await codecs.learn(decoded);
      } catch (error) {
        telemetry.logger.warn(
          { error },
          'a control event waits for its schema: the look-up failed, and is tried again',
        );
        await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
      }
    }
    return undefined;
  }

  #close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.#wake();
    // A reader that could not be opened is told by `ready` and `next`; there is nothing to close.
    const reader = await this.#reader.catch(() => undefined);
    await reader?.close();
    this.#onClosed();
  }
}
