const CAPACITY_MIN = 64;

/**
 * The delivered records of one partition that wait for their acknowledgement, and the offset that may be committed.
 *
 * A ring of offsets in delivery order: acknowledgements come in any order, and the ring gives up its front as far as all are
 * acknowledged. Offsets may have gaps (compaction, transaction markers). Adding and acknowledging allocate nothing.
 */
export class ContiguousCommit {
  #offsets = new Float64Array(CAPACITY_MIN);
  #bytes = new Float64Array(CAPACITY_MIN);
  #acknowledged = new Uint8Array(CAPACITY_MIN);
  #front = 0;
  #length = 0;
  #position: number;
  #unacknowledged = 0;
  #unacknowledgedBytes = 0;

  /** @param position The offset that will be delivered next. */
  constructor(position: number) {
    this.#position = position;
  }

  /** Records delivered and not acknowledged. */
  get unacknowledged(): number {
    return this.#unacknowledged;
  }

  get unacknowledgedBytes(): number {
    return this.#unacknowledgedBytes;
  }

  /** Records from the first unacknowledged one to the last delivered one: what a crash would deliver again. */
  get window(): number {
    return this.#length;
  }

  /** The offset below which everything is acknowledged. */
  get committable(): number {
    return this.#length === 0 ? this.#position : (this.#offsets[this.#front] ?? this.#position);
  }

  /** Takes note of a delivered record. Offsets must rise. */
  add(offset: number, bytes: number): void {
    if (this.#length === this.#offsets.length) this.#grow();
    const index = (this.#front + this.#length) & (this.#offsets.length - 1);
    this.#offsets[index] = offset;
    this.#bytes[index] = bytes;
    this.#acknowledged[index] = 0;
    this.#length++;
    this.#unacknowledged++;
    this.#unacknowledgedBytes += bytes;
    this.#position = offset + 1;
  }

  /** Moves past offsets that hold no record for us. */
  advanceTo(position: number): void {
    if (position > this.#position) this.#position = position;
  }

  /** False where the offset is not waiting (never delivered, or acknowledged before). */
  acknowledge(offset: number): boolean {
    const index = this.#find(offset);
    if (index === -1 || this.#acknowledged[index] === 1) return false;
    this.#acknowledged[index] = 1;
    this.#unacknowledged--;
    this.#unacknowledgedBytes -= this.#bytes[index] ?? 0;
    const mask = this.#offsets.length - 1;
    while (this.#length > 0 && this.#acknowledged[this.#front] === 1) {
      this.#front = (this.#front + 1) & mask;
      this.#length--;
    }
    return true;
  }

  /** Where offsets have no gaps the place follows from the first offset; a binary search serves the rest. */
  #find(offset: number): number {
    const mask = this.#offsets.length - 1;
    const guess = offset - this.committable;
    if (this.#length === 0 || guess < 0) return -1;
    if (guess < this.#length) {
      const index = (this.#front + guess) & mask;
      if (this.#offsets[index] === offset) return index;
    }
    let low = 0;
    let high = this.#length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const index = (this.#front + middle) & mask;
      const found = this.#offsets[index] ?? 0;
      if (found === offset) return index;
      if (found < offset) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #grow(): void {
    const capacity = this.#offsets.length;
    const offsets = new Float64Array(capacity * 2);
    const bytes = new Float64Array(capacity * 2);
    const acknowledged = new Uint8Array(capacity * 2);
    for (let i = 0; i < this.#length; i++) {
      const from = (this.#front + i) & (capacity - 1);
      offsets[i] = this.#offsets[from] ?? 0;
      bytes[i] = this.#bytes[from] ?? 0;
      acknowledged[i] = this.#acknowledged[from] ?? 0;
    }
    this.#offsets = offsets;
    this.#bytes = bytes;
    this.#acknowledged = acknowledged;
    this.#front = 0;
  }
}
