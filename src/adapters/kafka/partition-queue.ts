import { Fifo } from '../../core/fifo.ts';
import type { InboundRecord } from '../../ports/message-bus.ts';
import { ContiguousCommit } from './contiguous-commit.ts';

export interface QueueLimits {
  unacknowledgedMax: number;
  unacknowledgedBytesMax: number;
}

const NONE: readonly InboundRecord[] = [];
/** One record that is never acknowledged must not let the window behind it grow for ever. */
const WINDOW_PER_UNACKNOWLEDGED = 100;

/**
 * One partition between the fetches and the subscriber: fetched records wait here until few enough are unacknowledged.
 * A fetch is not cut to measure, and a paused partition takes a moment to be fetched again, so some records are held in
 * stock: fetching stops at `full` and goes on at `low`.
 */
export class PartitionQueue {
  readonly #limits: QueueLimits;
  readonly #commit: ContiguousCommit;
  #held = new Fifo<InboundRecord>();
  #heldBytes = 0;
  #position: number;

  constructor(position: number, limits: QueueLimits) {
    this.#limits = limits;
    this.#position = position;
    this.#commit = new ContiguousCommit(position);
  }

  /** The offset to fetch next. */
  get position(): number {
    return this.#position;
  }

  get committable(): number {
    return this.#commit.committable;
  }

  get unacknowledged(): number {
    return this.#commit.unacknowledged;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Time to stop fetching. */
  get full(): boolean {
    return (
      this.held >= this.#limits.unacknowledgedMax ||
      this.#heldBytes >= this.#limits.unacknowledgedBytesMax / 2
    );
  }

  /** Time to fetch again. */
  get low(): boolean {
    return (
      this.held <= this.#limits.unacknowledgedMax / 2 &&
      this.#heldBytes <= this.#limits.unacknowledgedBytesMax / 4
    );
  }

  /** Takes a fetch in; `position` is the offset after it, past what holds no record for us. */
  offer(records: InboundRecord[], position: number): void {
    this.#position = position;
    if (records.length === 0) {
      if (this.held === 0) this.#commit.advanceTo(position);
      return;
    }
    for (const record of records) this.#heldBytes += bytesOf(record);
    this.#held.pushAll(records);
  }

  /** The records that may be delivered now; they count as delivered from here on. */
  take(): readonly InboundRecord[] {
    const count = this.#deliverable();
    if (count === 0) return NONE;
    const records = this.#held.take(count);
    for (const record of records) {
      const bytes = bytesOf(record);
      this.#heldBytes -= bytes;
      this.#commit.add(record.offset, bytes);
    }
    if (this.held === 0) this.#commit.advanceTo(this.#position);
    return records;
  }

  acknowledge(offset: number): boolean {
    return this.#commit.acknowledge(offset);
  }

  /** Forgets what was not delivered: the partition goes away. */
  drop(): void {
    this.#held = new Fifo();
    this.#heldBytes = 0;
  }

  #deliverable(): number {
    const { unacknowledgedMax, unacknowledgedBytesMax } = this.#limits;
    const held = this.held;
    const room = unacknowledgedMax - this.#commit.unacknowledged;
    if (held === 0 || room <= 0) return 0;
    if (this.#commit.window >= unacknowledgedMax * WINDOW_PER_UNACKNOWLEDGED) return 0;
    const most = Math.min(held, room);
    let bytes = this.#commit.unacknowledgedBytes;
    let count = 0;
    while (count < most) {
      const record = this.#held.at(count);
      if (record === undefined) break;
      bytes += bytesOf(record);
      // A record above the limit goes alone: it must go some time.
      if (bytes > unacknowledgedBytesMax && (count > 0 || this.#commit.unacknowledged > 0)) break;
      count++;
    }
    return count;
  }
}

function bytesOf(record: InboundRecord): number {
  return (record.key?.length ?? 0) + (record.value?.length ?? 0);
}
