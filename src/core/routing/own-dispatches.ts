const FIRST_CAPACITY = 4;
/** What stands in a row. */
const SEQUENCE = 0;
const PREDICTED_MS = 1;
const DISPATCHED_AT_MS = 2;
const DUE_MS = 3;
const FIELDS = 4;
/** In the place of the sequence number of one that has ended. */
const ENDED = -1;

/**
 * What one router has dispatched to one worker and not heard the end of, in the order of dispatch. Ends come in any order. One array of numbers, since
 * a router has one of these for each worker, and each lies elsewhere in memory.
 */
export class OwnDispatches {
  #rows = new Float64Array(FIRST_CAPACITY * FIELDS);
  #first = 0;
  #length = 0;
  #openMs = 0;
  #open = 0;

  /** Predicted work of all of them, ms at speed 1. */
  get workMs(): number {
    return this.#openMs;
  }

  get count(): number {
    return this.#open;
  }

  /** When the oldest should have been heard of; Infinity where there is none. */
  get oldestDueMs(): number {
    return this.#length === 0 ? Number.POSITIVE_INFINITY : (this.#rows[this.#row(0) + DUE_MS] ?? 0);
  }

  /**
   * @param sequence from 0 on, greater than every one before
   * @param dueMs when its end should be heard of
   */
  push(sequence: number, predictedMs: number, dispatchedAtMs: number, dueMs: number): void {
    if (this.#length * FIELDS === this.#rows.length) this.#grow();
    const row = this.#row(this.#length);
    this.#rows[row + SEQUENCE] = sequence;
    this.#rows[row + PREDICTED_MS] = predictedMs;
    this.#rows[row + DISPATCHED_AT_MS] = dispatchedAtMs;
    this.#rows[row + DUE_MS] = dueMs;
    this.#length += 1;
    this.#openMs += predictedMs;
    this.#open += 1;
  }

  /** Takes one out; answers undefined where it is not among them. */
  end(sequence: number): { predictedMs: number; dispatchedAtMs: number } | undefined {
    if (sequence <= ENDED) return undefined;
    for (let i = 0; i < this.#length; i++) {
      const row = this.#row(i);
      if (this.#rows[row + SEQUENCE] !== sequence) continue;
      const predictedMs = this.#rows[row + PREDICTED_MS] ?? 0;
      const dispatchedAtMs = this.#rows[row + DISPATCHED_AT_MS] ?? 0;
      this.#rows[row + SEQUENCE] = ENDED;
      this.#open -= 1;
      // Sums of many differences drift: none is 0 exactly.
      this.#openMs = this.#open === 0 ? 0 : this.#openMs - predictedMs;
      this.#dropEnded();
      return { predictedMs, dispatchedAtMs };
    }
    return undefined;
  }

  /** Forgets all. */
  clear(): void {
    this.#length = 0;
    this.#open = 0;
    this.#openMs = 0;
  }

  /** Those after a sequence number, in the order of dispatch. */
  forEachAfter(sequence: number, see: (predictedMs: number, dispatchedAtMs: number) => void): void {
    for (let i = 0; i < this.#length; i++) {
      const row = this.#row(i);
      const own = this.#rows[row + SEQUENCE] ?? ENDED;
      if (own !== ENDED && own > sequence)
        see(this.#rows[row + PREDICTED_MS] ?? 0, this.#rows[row + DISPATCHED_AT_MS] ?? 0);
    }
  }

  countAfter(sequence: number): number {
    let count = 0;
    this.forEachAfter(sequence, () => {
      count += 1;
    });
    return count;
  }

  /** Predicted work of those after a sequence number, ms at speed 1. */
  workAfter(sequence: number): number {
    let workMs = 0;
    this.forEachAfter(sequence, (predictedMs) => {
      workMs += predictedMs;
    });
    return workMs;
  }

  #dropEnded(): void {
    while (this.#length > 0 && this.#rows[this.#row(0) + SEQUENCE] === ENDED) {
      this.#first = this.#row(1);
      this.#length -= 1;
    }
  }

  /** Where the i-th stands; the array is a ring, and its length a power of two. */
  #row(index: number): number {
    return (this.#first + index * FIELDS) & (this.#rows.length - 1);
  }

  #grow(): void {
    const { length } = this.#rows;
    const rows = new Float64Array(length * 2);
    rows.set(this.#rows.subarray(this.#first));
    rows.set(this.#rows.subarray(0, this.#first), length - this.#first);
    this.#rows = rows;
    this.#first = 0;
  }
}
