import type { InboundRecord, TopicPartition } from '../../ports/message-bus.ts';
import { Cursor, type CursorOutlet, type CursorSurroundings } from './cursor.ts';
import type { Grant } from './group.ts';
import type { PartitionLog, StoredRecord } from './partition-log.ts';
import { Unacknowledged } from './unacknowledged.ts';

export interface DeliveryLimits {
  unacknowledgedMax: number;
  unacknowledgedBytesMax: number;
}

/** Where an owned partition hands over its records. */
export interface RecordSink {
  records(records: readonly InboundRecord[]): void;
  skipped(place: TopicPartition, count: number): void;
}

/** A partition in a member's hands, from its grant until it is let go. */
export class OwnedPartition implements CursorOutlet {
  readonly grant: Grant;
  readonly #limits: DeliveryLimits;
  readonly #sink: RecordSink;
  readonly #unacknowledged: Unacknowledged;
  #cursor: Cursor | undefined;
  draining = false;

  constructor(grant: Grant, limits: DeliveryLimits, sink: RecordSink) {
    this.grant = grant;
    this.#limits = limits;
    this.#sink = sink;
    this.#unacknowledged = new Unacknowledged(grant.start);
  }

  /** Offset below which everything is acknowledged. */
  get contiguous(): number {
    return this.#unacknowledged.contiguous;
  }

  startDelivery(log: PartitionLog, surroundings: CursorSurroundings): void {
    this.#cursor = new Cursor(log, this.grant.start, this, surroundings);
  }

  stopDelivery(): void {
    this.#cursor?.close();
  }

  /** @returns whether there is more to commit than before. */
  acknowledge(offset: number): boolean {
    const moved = this.#unacknowledged.acknowledge(offset);
    this.#cursor?.wake();
    return moved;
  }

  roomRecords(): number {
    return this.#limits.unacknowledgedMax - this.#unacknowledged.count;
  }

  roomBytes(): number {
    return this.#limits.unacknowledgedBytesMax - this.#unacknowledged.bytes;
  }

  deliver(stored: readonly StoredRecord[]): void {
    const { topic, partition, assignment } = this.grant;
    const records: InboundRecord[] = [];
    for (const { offset, timestampMs, key, value, headers, bytes } of stored) {
      this.#unacknowledged.delivered(offset, bytes);
      records.push({ topic, partition, offset, timestampMs, key, value, headers, assignment });
    }
    this.#sink.records(records);
  }

  moved(): void {
    // Only acknowledgements move what may be committed.
  }

  skipped(count: number): void {
    this.#sink.skipped(this.grant, count);
  }
}
