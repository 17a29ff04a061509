import { Fifo } from '../../core/fifo.ts';
import type { OnStored, OutboundRecord } from '../../ports/message-bus.ts';
import type { PartitionBatch } from './client.ts';

/** A record and the promise that `produce` gave for it. */
export interface OutboxEntry {
  readonly record: OutboundRecord;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
  readonly onStored: OnStored | undefined;
}

const FRAME_BYTES = 32;

/** The records of one partition in the order of the calls, the first of them in flight. */
export class Outbox {
  readonly topic: string;
  readonly partition: number;
  /** `queued` and `sending` in a lane; `waiting` for a leader or for a refusal to pass. */
  state: 'idle' | 'queued' | 'sending' | 'waiting' = 'idle';
  failures = 0;
  readonly #entries = new Fifo<OutboxEntry>();
  #sending = 0;
  /** What was sent without an answer is sent again as it was: brokers know a repeated batch by its first and last record. */
  #repeat = 0;
  /** Fewer than usual while a record is looked for that spoils its batch. */
  #countMax = Number.POSITIVE_INFINITY;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  push(record: OutboundRecord, bytes: number, onStored?: OnStored): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#entries.push({ record, bytes: bytes + FRAME_BYTES, resolve, reject, onStored });
    });
  }

  /** What is sent next: at most so many bytes, but always one record. */
  send(limits: { count: number; bytes: number }): { batch: PartitionBatch; bytes: number } {
    const isRepeat = this.#repeat > 0;
    const countMax = isRepeat ? this.#repeat : Math.min(limits.count, this.#countMax);
    const records: OutboundRecord[] = [];
    let bytes = 0;
    while (records.length < countMax) {
      const entry = this.#entries.at(records.length);
      if (entry === undefined) break;
      if (!isRepeat && records.length > 0 && bytes + entry.bytes > limits.bytes) break;
      bytes += entry.bytes;
      records.push(entry.record);
    }
    this.#sending = records.length;
    this.state = 'sending';
    return { batch: { topic: this.topic, partition: this.partition, records }, bytes };
  }

  /** The records in flight are done with. */
  stored(): readonly OutboxEntry[] {
    const done = this.#entries.take(this.#sending);
    this.#sending = 0;
    this.#repeat = 0;
    this.#countMax *= 2;
    return done;
  }

  /** The records in flight have to be sent again. */
  unsent(): void {
    this.#repeat = this.#sending;
    this.#sending = 0;
  }

  /** Halves what is sent at once; false where it was one record already. */
  narrow(): boolean {
    if (this.#sending <= 1) return false;
    this.#countMax = Math.ceil(this.#sending / 2);
    this.#repeat = 0;
    this.#sending = 0;
    return true;
  }

  clear(): readonly OutboxEntry[] {
    this.#sending = 0;
    this.#repeat = 0;
    return this.#entries.take(this.#entries.length);
  }
}
