import { Fifo } from '../core/fifo.ts';
import type { InboundRecord, TopicPartition } from '../ports/message-bus.ts';

/** Records that were delivered and not read yet, for one reader. What bounds them is the subscription's `unacknowledgedMax`. */
export class Inbox {
  #records = new Fifo<InboundRecord>();
  #waiting: ((record: InboundRecord | undefined) => void) | undefined;
  #ended = false;

  push(records: readonly InboundRecord[]): void {
    if (this.#ended) return;
    for (const record of records) this.#records.push(record);
    this.#hand();
  }

  /** Forgets the records of partitions that go to another reader, who gets them again. */
  discard(partitions: readonly TopicPartition[]): void {
    const isGoing = (record: InboundRecord): boolean =>
      partitions.some(({ topic, partition }) => record.topic === topic && record.partition === partition);
    const kept = this.#records.take(this.#records.length).filter((record) => !isGoing(record));
    this.#records.pushAll(kept);
  }

  /** Whoever waits, and whoever asks from now on, gets undefined, even where records are left. */
  end(): void {
    this.#ended = true;
    this.#records = new Fifo();
    this.#hand();
  }

  /** The next record as soon as there is one; undefined after the end. One call at a time. */
  next(): Promise<InboundRecord | undefined> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#hand();
    });
  }

  #hand(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const record = this.#records.shift();
    if (record === undefined && !this.#ended) return;
    this.#waiting = undefined;
    waiting(record);
  }
}
