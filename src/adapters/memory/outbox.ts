import { MillraceError } from '../../core/errors.ts';
import type { OnStored, OutboundRecord } from '../../ports/message-bus.ts';
import type { Link } from './link.ts';

/** Stores a record and answers its offset, or throws what its sender is to be told. `undefined` while the topic takes none for a passing reason. */
export type Append = (record: OutboundRecord) => number | undefined;

interface Sending {
  readonly record: OutboundRecord;
  readonly resolve: () => void;
  readonly onStored: OnStored | undefined;
  readonly reject: (error: unknown) => void;
}

/** Records on their way to the broker: what gathers during a turn of the link is stored together in the next. */
export class Outbox {
  readonly #link: Link;
  readonly #append: Append;
  #sending: Sending[] = [];
  #flushScheduled = false;
  #whenEmpty: (() => void)[] = [];

  constructor(link: Link, append: Append) {
    this.#link = link;
    this.#append = append;
  }

  send(record: OutboundRecord, onStored?: OnStored): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sending.push({ record, resolve, reject, onStored });
      this.flushSoon();
    });
  }

  flushSoon(): void {
    if (this.#flushScheduled || this.#sending.length === 0) return;
    this.#flushScheduled = true;
    this.#link.call(() => this.#flush());
  }

  /** Resolves once nothing is on its way. */
  empty(): Promise<void> {
    if (this.#sending.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  /** Gives up what is still on its way. */
  abandon(): void {
    const sending = this.#sending;
    this.#sending = [];
    for (const { record, reject } of sending) {
      reject(
        new MillraceError('BUS_UNAVAILABLE', 'The bus was closed before the record was stored', {
          value: record.topic,
        }),
      );
    }
  }

  #flush(): void {
    this.#flushScheduled = false;
    this.#sending = this.#sending.filter((each) => !this.#store(each));
    if (this.#sending.length > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  /** @returns whether the sender has its answer. */
  #store({ record, resolve, reject, onStored }: Sending): boolean {
    try {
      const offset = this.#append(record);
      if (offset === undefined) return false;
      onStored?.(offset);
      resolve();
    } catch (error) {
      reject(error);
    }
    return true;
  }
}
