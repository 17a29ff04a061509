import type { ScoredResult } from '../contracts/records.ts';
import { createFirstResultFilter } from '../core/outcome/first-result-filter.ts';
import { identityKey } from '../core/outcome/identity.ts';
import type { InboundRecord, Subscription } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';

export interface ResultsOptions {
  /** Consumer group that shares the results; a group of its own, from now on, where absent. */
  group?: string;
  startAt?: 'earliest' | 'latest';
  /** Results kept ready for the reader; the bus waits while so many are. */
  bufferMax?: number;
  signal?: AbortSignal;
}

/** A result with where it lies. */
export interface ReceivedResult {
  result: ScoredResult;
  partition: number;
  offset: number;
}

const IDENTITIES_MAX = 200_000;

/**
 * Results as they come, the first per identity only: a second result of a crash or a hedge is dropped. A result counts as consumed, and is
 * committed, when the reader asks for the next one. Ends when the signal aborts or the loop is left.
 */
export async function* resultStream(
  connection: Connection,
  options: ResultsOptions = {},
): AsyncGenerator<ReceivedResult, void, void> {
  const inbox = new Inbox();
  const abort = (): void => inbox.end();
  if (options.signal?.aborted) return;
  options.signal?.addEventListener('abort', abort, { once: true });
  const subscription = await connection.bus.subscribe(
    {
      group: options.group ?? `${connection.topics.prefix}.results.${connection.newId()}`,
      topics: [connection.topics.fixed('scored-results')],
      startAt: options.startAt ?? 'latest',
      unacknowledgedMax: options.bufferMax ?? 1_000,
    },
    { onRecords: (records) => inbox.push(records) },
  );
  try {
    yield* firstResults(connection, subscription, inbox);
  } finally {
    options.signal?.removeEventListener('abort', abort);
    await subscription.close();
  }
}

async function* firstResults(
  connection: Connection,
  subscription: Subscription,
  inbox: Inbox,
): AsyncGenerator<ReceivedResult, void, void> {
  const codec = connection.codecs.for('ScoredResult');
  const isFirst = createFirstResultFilter({ identitiesMax: IDENTITIES_MAX });
  for (let record = await inbox.next(); record !== undefined; record = await inbox.next()) {
    let decoded = codec.decode(record.value);
    if (decoded.status === 'schema-unknown') {
      await connection.codecs.learn(decoded.schemaId);
      decoded = codec.decode(record.value);
    }
    if (decoded.status === 'ok') {
      if (isFirst(identityKey(decoded.value.identity)))
        yield { result: decoded.value, partition: record.partition, offset: record.offset };
    }
    subscription.acknowledge(record);
  }
}

/** Records that were delivered and not read yet. Bounded by the subscription's `unacknowledgedMax`. */
class Inbox {
  readonly #records: InboundRecord[] = [];
  #head = 0;
  #waiting: ((record: InboundRecord | undefined) => void) | undefined;
  #ended = false;

  push(records: readonly InboundRecord[]): void {
    this.#records.push(...records);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  next(): Promise<InboundRecord | undefined> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#wake();
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    if (this.#ended) {
      this.#waiting = undefined;
      waiting(undefined);
      return;
    }
    const record = this.#records[this.#head];
    if (record === undefined) return;
    this.#head += 1;
    if (this.#head > 1_000 && this.#head * 2 > this.#records.length) {
      this.#records.splice(0, this.#head);
      this.#head = 0;
    }
    this.#waiting = undefined;
    waiting(record);
  }
}
