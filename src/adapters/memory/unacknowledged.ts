import { findOffset } from './find-offset.ts';

interface Outstanding {
  readonly offset: number;
  readonly bytes: number;
  acknowledged: boolean;
}

const DEAD_PREFIX_MIN = 1_024;

/** The records of one partition that were delivered under one assignment, and which of them are done. */
export class Unacknowledged {
  /** Offset below which everything is acknowledged: what may be committed. */
  contiguous: number;
  /** Records delivered and not acknowledged. */
  count = 0;
  bytes = 0;
  #outstanding: Outstanding[] = [];
  #first = 0;

  /** @param start offset from which the assignment reads. */
  constructor(start: number) {
    this.contiguous = start;
  }

  /** Offsets must rise from call to call; they need not be adjacent. */
  delivered(offset: number, bytes: number): void {
    this.#outstanding.push({ offset, bytes, acknowledged: false });
    this.count++;
    this.bytes += bytes;
  }

  /** @returns whether `contiguous` moved. An offset that was not delivered, or is acknowledged already, changes nothing. */
  acknowledge(offset: number): boolean {
    const record = this.#find(offset);
    if (record === undefined || record.acknowledged) return false;
    record.acknowledged = true;
    this.count--;
    this.bytes -= record.bytes;
    return this.#advance();
  }

  #advance(): boolean {
    const before = this.contiguous;
    for (
      let next = this.#outstanding[this.#first];
      next?.acknowledged === true;
      next = this.#outstanding[this.#first]
    ) {
      this.contiguous = next.offset + 1;
      this.#first++;
    }
    if (this.#first >= DEAD_PREFIX_MIN && this.#first * 2 >= this.#outstanding.length) {
      this.#outstanding = this.#outstanding.slice(this.#first);
      this.#first = 0;
    }
    return this.contiguous !== before;
  }

  #find(offset: number): Outstanding | undefined {
    const found = this.#outstanding[findOffset(this.#outstanding, this.#first, offset)];
    return found?.offset === offset ? found : undefined;
  }
}
