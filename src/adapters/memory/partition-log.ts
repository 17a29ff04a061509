import type { Headers, OutboundRecord } from '../../ports/message-bus.ts';
import { findOffset } from './find-offset.ts';

/** A record as the log keeps it: its bytes are the log's own copy, shared by all who read it. */
export interface StoredRecord {
  readonly offset: number;
  /** Append time on the broker's wall clock, whole milliseconds. */
  readonly timestampMs: number;
  /** Append time on the monotonic clock. */
  readonly storedAtMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Headers;
  /** Size of key, value, headers and what Kafka adds on the wire. */
  readonly bytes: number;
}

/** Whoever wants to know of new records. */
export interface AppendListener {
  appended(): void;
}

const RECORD_OVERHEAD_BYTES = 70;
/** What the objects around a record's bytes take in this process, roughly. */
const RETAINED_OVERHEAD_BYTES = 500;
const DEAD_PREFIX_MIN = 1_024;
const NO_HEADERS: Headers = Object.freeze({});
/** In the place of a record that is gone, so that its bytes are freed before its place is cut off. */
const GONE: StoredRecord = {
  offset: -1,
  timestampMs: 0,
  storedAtMs: 0,
  key: null,
  value: null,
  headers: NO_HEADERS,
  bytes: 0,
};

/** What a record weighs against `max.message.bytes`, retention and limits. */
export function recordBytes(record: OutboundRecord): number {
  let bytes = RECORD_OVERHEAD_BYTES + (record.key?.length ?? 0) + (record.value?.length ?? 0);
  if (record.headers !== undefined) {
    for (const name in record.headers) bytes += name.length + 2 + (record.headers[name]?.length ?? 0);
  }
  return bytes;
}

/** The log of one partition: offsets rise by one and are never given twice, whatever retention and compaction take away. */
export class PartitionLog {
  /** Offset that the next record gets. */
  high = 0;
  /** First offset that retention has kept; compaction does not move it. */
  low = 0;
  /** Memory that the kept records take. */
  retainedBytes = 0;
  /** Of all records that ever came, and that ever went to readers. */
  inBytes = 0;
  outBytes = 0;
  readonly listeners = new Set<AppendListener>();
  #records: StoredRecord[] = [];
  /** Index of the first record still kept; what lies before it is cut off now and then. */
  #first = 0;

  /** @returns the record's offset. */
  append(record: OutboundRecord, bytes: number, timestampMs: number, storedAtMs: number): number {
    const offset = this.high++;
    this.#records.push({
      offset,
      timestampMs,
      storedAtMs,
      key: copy(record.key),
      value: copy(record.value),
      headers: copyHeaders(record.headers),
      bytes,
    });
    this.inBytes += bytes;
    this.retainedBytes += bytes + RETAINED_OVERHEAD_BYTES;
    for (const listener of this.listeners) listener.appended();
    return offset;
  }

  /** The first record at or after `offset`. */
  at(offset: number): StoredRecord | undefined {
    return this.#records[this.#indexOf(offset)];
  }

  /** For a reader: records from `offset` on that were stored no later than `storedUntilMs`; at least one where there is one, else within both limits. */
  read(offset: number, countMax: number, bytesMax: number, storedUntilMs: number): StoredRecord[] {
    const start = this.#indexOf(offset);
    let end = start;
    let bytes = 0;
    while (end - start < countMax) {
      const record = this.#records[end];
      if (record === undefined || record.storedAtMs > storedUntilMs) break;
      if (bytes > 0 && bytes + record.bytes > bytesMax) break;
      bytes += record.bytes;
      end++;
    }
    this.outBytes += bytes;
    return this.#records.slice(start, end);
  }

  oldest(): StoredRecord | undefined {
    return this.#records[this.#first];
  }

  /** Takes away records from the oldest on, while `isExpired` says so. */
  expire(isExpired: (record: StoredRecord) => boolean): void {
    for (let record = this.oldest(); record !== undefined && isExpired(record); record = this.oldest()) {
      this.retainedBytes -= record.bytes + RETAINED_OVERHEAD_BYTES;
      this.low = record.offset + 1;
      this.#records[this.#first++] = GONE;
    }
    if (this.#first >= DEAD_PREFIX_MIN && this.#first * 2 >= this.#records.length) {
      this.#records = this.#records.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Keeps the last record of each key; a tombstone goes as well once it was stored at or before `tombstonesUntilMs`. */
  compact(tombstonesUntilMs: number): void {
    const kept = this.#records.slice(this.#first);
    const lastOffsets = new Map<string, number>();
    for (const record of kept) lastOffsets.set(keyText(record), record.offset);
    this.#records = kept.filter(
      (record) =>
        lastOffsets.get(keyText(record)) === record.offset &&
        !(record.value === null && record.storedAtMs <= tombstonesUntilMs),
    );
    this.#first = 0;
    this.retainedBytes = this.#records.reduce(
      (sum, record) => sum + record.bytes + RETAINED_OVERHEAD_BYTES,
      0,
    );
  }

  /** Index of the first kept record at or after `offset`. */
  #indexOf(offset: number): number {
    return findOffset(this.#records, this.#first, offset);
  }
}

/** Like the bytes that go over a wire: what the sender does with its buffers afterwards changes nothing here. */
function copy(bytes: Buffer | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes);
}

/** As Kafka's adapters, it leaves out a header without a value, which other producers can write. */
function copyHeaders(headers: Readonly<Record<string, Buffer | null>> | undefined): Headers {
  if (headers === undefined) return NO_HEADERS;
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [[name, Buffer.from(value)]])),
  );
}

function keyText(record: StoredRecord): string {
  return record.key === null ? '' : record.key.toString('latin1');
}
