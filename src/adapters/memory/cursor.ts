import type { Cancel, Clock } from '../../ports/clock.ts';
import type { Link } from './link.ts';
import type { AppendListener, PartitionLog, StoredRecord } from './partition-log.ts';

/** Where a cursor delivers, and how much of it there may be now. */
export interface CursorOutlet {
  /** Records that may be delivered now; 0 stops delivery until `Cursor.wake`. */
  roomRecords(): number;
  roomBytes(): number;
  deliver(records: readonly StoredRecord[]): void;
  /** The cursor stands at another position than before, by delivery or over a gap. */
  moved(): void;
  /** Retention took `count` offsets away before they were delivered. */
  skipped(count: number): void;
}

export interface CursorSurroundings {
  clock: Clock;
  link: Link;
  /** Between the append of a record and its delivery. */
  deliveryDelayMs: number;
}

/** At most so many records go out in one call, so that one partition does not hold up the others. */
const DELIVERY_RECORDS_MAX = 500;

/** Times are sums in floating point, where (a + b) - b may be a hair off a. */
const ROUNDING_MS = 0.001;

/** A place in a partition's log that moves on as records are delivered. */
export class Cursor implements AppendListener {
  readonly #log: PartitionLog;
  readonly #outlet: CursorOutlet;
  readonly #surroundings: CursorSurroundings;
  #position: number;
  #cancel: Cancel | undefined;
  #closed = false;

  constructor(log: PartitionLog, position: number, outlet: CursorOutlet, surroundings: CursorSurroundings) {
    this.#log = log;
    this.#position = position;
    this.#outlet = outlet;
    this.#surroundings = surroundings;
    log.listeners.add(this);
    surroundings.link.listeners.add(this);
    this.wake();
  }

  /** Offset that is delivered next. */
  get position(): number {
    return this.#position;
  }

  appended(): void {
    if (this.#cancel === undefined) this.wake();
  }

  reconnected(): void {
    this.wake();
  }

  /** Looks again whether something can be delivered. */
  wake(): void {
    if (this.#closed || this.#cancel !== undefined || this.#position >= this.#log.high) return;
    if (!this.#surroundings.link.up || this.#outlet.roomRecords() <= 0 || this.#outlet.roomBytes() <= 0)
      return;
    this.#cancel = this.#surroundings.clock.after(this.#waitMs(), () => this.#deliver());
  }

  close(): void {
    this.#closed = true;
    this.#log.listeners.delete(this);
    this.#surroundings.link.listeners.delete(this);
    this.#cancel?.();
  }

  /** Until the next record has been under way for the delivery delay. */
  #waitMs(): number {
    const { clock, deliveryDelayMs } = this.#surroundings;
    if (deliveryDelayMs === 0) return 0;
    const next = this.#log.at(this.#position);
    return next === undefined ? 0 : Math.max(0, next.storedAtMs + deliveryDelayMs - clock.monotonicMs());
  }

  #deliver(): void {
    this.#cancel = undefined;
    const { clock, link, deliveryDelayMs } = this.#surroundings;
    if (!link.up) return;
    this.#skipExpired();
    const countMax = Math.min(DELIVERY_RECORDS_MAX, this.#outlet.roomRecords());
    const storedUntilMs = clock.monotonicMs() - deliveryDelayMs + ROUNDING_MS;
    const records = this.#log.read(this.#position, countMax, this.#outlet.roomBytes(), storedUntilMs);
    const last = records[records.length - 1];
    if (last !== undefined) {
      this.#position = last.offset + 1;
      this.#outlet.deliver(records);
    } else if (this.#log.at(this.#position) === undefined) {
      this.#position = this.#log.high;
    }
    this.#outlet.moved();
    this.wake();
  }

  #skipExpired(): void {
    const gone = this.#log.low - this.#position;
    if (gone <= 0) return;
    this.#position = this.#log.low;
    this.#outlet.skipped(gone);
  }
}
