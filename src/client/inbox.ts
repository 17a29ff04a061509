import type { InboundRecord, TopicPartition } from '../ports/message-bus.ts';

const COMPACT_FROM = 1_000;

/** Records that were delivered and not read yet, for one reader. What bounds them is the subscription's `unacknowledgedMax`. */
export class Inbox {
  readonly #records: InboundRecord[] = [];
  #head = 0;
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
    const kept = this.#records.slice(this.#head).filter((record) => !isGoing(record));
    this.#records.splice(0, this.#records.length, ...kept);
    this.#head = 0;
  }

  /** Whoever waits, and whoever asks from now on, gets undefined, even where records are left. */
  end(): void {
    this.#ended = true;
    this.#records.length = 0;
    this.#head = 0;
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
    const record = this.#ended ? undefined : this.#records[this.#head];
    if (record === undefined && !this.#ended) return;
    this.#waiting = undefined;
    this.#head += 1;
    if (this.#head >= COMPACT_FROM && this.#head * 2 > this.#records.length) {
      this.#records.splice(0, this.#head);
      this.#head = 0;
    }
    waiting(record);
  }
}
