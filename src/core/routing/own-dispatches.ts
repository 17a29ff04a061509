const FIRST_CAPACITY = 8;

/**
 * What one router has dispatched to one worker and not heard the end of, in the order of dispatch. Ends come in any order; numbers only, since a
 * router looks at this for every worker at every request.
 */
export class OwnDispatches {
  #sequence = new Float64Array(FIRST_CAPACITY);
  #predictedMs = new Float64Array(FIRST_CAPACITY);
  #dispatchedAtMs = new Float64Array(FIRST_CAPACITY);
  #dueMs = new Float64Array(FIRST_CAPACITY);
  /** 0 once it has ended. */
  #isOpen = new Uint8Array(FIRST_CAPACITY);
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
    return this.#length === 0 ? Number.POSITIVE_INFINITY : (this.#dueMs[this.#first] ?? 0);
  }

  /** @param dueMs when its end should be heard of */
  push(sequence: number, predictedMs: number, dispatchedAtMs: number, dueMs: number): void {
    if (this.#length === this.#sequence.length) this.#grow();
    const place = this.#place(this.#length);
    this.#sequence[place] = sequence;
    this.#predictedMs[place] = predictedMs;
    this.#dispatchedAtMs[place] = dispatchedAtMs;
    this.#dueMs[place] = dueMs;
    this.#isOpen[place] = 1;
    this.#length += 1;
    this.#openMs += predictedMs;
    this.#open += 1;
  }

  /** Takes one out; answers undefined where it is not among them. */
  end(sequence: number): { predictedMs: number; dispatchedAtMs: number } | undefined {
    for (let i = 0; i < this.#length; i++) {
      const place = this.#place(i);
      if (this.#sequence[place] !== sequence || this.#isOpen[place] === 0) continue;
      const predictedMs = this.#predictedMs[place] ?? 0;
      this.#isOpen[place] = 0;
      this.#open -= 1;
      // Sums of many differences drift: none is 0 exactly.
      this.#openMs = this.#open === 0 ? 0 : this.#openMs - predictedMs;
      this.#dropEnded();
      const dispatchedAtMs = this.#dispatchedAtMs[place] ?? 0;
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
      const place = this.#place(i);
      if ((this.#sequence[place] ?? 0) > sequence && this.#isOpen[place] === 1)
        see(this.#predictedMs[place] ?? 0, this.#dispatchedAtMs[place] ?? 0);
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
    while (this.#length > 0 && this.#isOpen[this.#first] === 0) {
      this.#first = this.#place(1);
      this.#length -= 1;
    }
  }

  #place(index: number): number {
    return (this.#first + index) & (this.#sequence.length - 1);
  }

  #grow(): void {
    const { length } = this.#sequence;
    const order = Array.from({ length }, (_, index) => this.#place(index));
    const turned = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(length * 2);
      order.forEach((place, index) => {
        to[index] = from[place] ?? 0;
      });
      return to;
    };
    const isOpen = new Uint8Array(length * 2);
    order.forEach((place, index) => {
      isOpen[index] = this.#isOpen[place] ?? 0;
    });
    this.#sequence = turned(this.#sequence);
    this.#predictedMs = turned(this.#predictedMs);
    this.#dispatchedAtMs = turned(this.#dispatchedAtMs);
    this.#dueMs = turned(this.#dueMs);
    this.#isOpen = isOpen;
    this.#first = 0;
  }
}
