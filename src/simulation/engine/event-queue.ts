const ARITY = 4;
const ARITY_BITS = 2;
const FIRST_CAPACITY = 1_024;

/**
 * Events in virtual time, as numbers only: nothing is allocated for one, so that a model takes millions a second. An event is an integer that its
 * model gave a meaning, from -2^31 to 2^31 - 1. Those due at the same time come out in the order in which they were scheduled.
 *
 * A heap of four children a node: half as deep as a binary one, and the children of a node lie side by side (LaMarca and Ladner 1996).
 */
export class EventQueue {
  #dueMs = new Float64Array(FIRST_CAPACITY);
  #sequence = new Float64Array(FIRST_CAPACITY);
  #event = new Int32Array(FIRST_CAPACITY);
  #size = 0;
  #scheduled = 0;
  #nowMs = 0;

  /** Events that are scheduled and not yet taken. */
  get size(): number {
    return this.#size;
  }

  /** When the event that was taken last was due. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** When the next event is due; Infinity where there is none. */
  get nextMs(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#dueMs[0] ?? 0);
  }

  /** @throws RangeError where the time has passed, or is none */
  schedule(dueMs: number, event: number): void {
    if (!(dueMs >= this.#nowMs))
      throw new RangeError(`an event at ${dueMs} ms: virtual time stands at ${this.#nowMs} ms already`);
    if (this.#size === this.#dueMs.length) this.#grow();
    const sequence = this.#scheduled++;
    const dues = this.#dueMs;
    const sequences = this.#sequence;
    const events = this.#event;
    let place = this.#size++;
    while (place > 0) {
      const parent = (place - 1) >> ARITY_BITS;
      const parentMs = dues[parent] ?? 0;
      // What was scheduled later stays below what is due at the same time.
      if (parentMs <= dueMs) break;
      dues[place] = parentMs;
      sequences[place] = sequences[parent] ?? 0;
      events[place] = events[parent] ?? 0;
      place = parent;
    }
    dues[place] = dueMs;
    sequences[place] = sequence;
    events[place] = event;
  }

  /**
   * Takes the next event out and moves time to it.
   * @throws RangeError where none is left: look at `nextMs` or `size` first
   */
  take(): number {
    if (this.#size === 0) throw new RangeError('no event is scheduled');
    const event = this.#event[0] ?? 0;
    this.#nowMs = this.#dueMs[0] ?? 0;
    this.#size -= 1;
    if (this.#size > 0) this.#sinkLast();
    return event;
  }

  /** Puts the last event in the place of the first and lets it sink. */
  #sinkLast(): void {
    const dues = this.#dueMs;
    const sequences = this.#sequence;
    const events = this.#event;
    const size = this.#size;
    const dueMs = dues[size] ?? 0;
    const sequence = sequences[size] ?? 0;
    let place = 0;
    for (;;) {
      const first = (place << ARITY_BITS) + 1;
      if (first >= size) break;
      let least = first;
      let leastMs = dues[first] ?? 0;
      const end = Math.min(first + ARITY, size);
      for (let child = first + 1; child < end; child++) {
        const childMs = dues[child] ?? 0;
        if (childMs > leastMs) continue;
        if (childMs === leastMs && (sequences[child] ?? 0) > (sequences[least] ?? 0)) continue;
        least = child;
        leastMs = childMs;
      }
      if (leastMs > dueMs || (leastMs === dueMs && (sequences[least] ?? 0) > sequence)) break;
      dues[place] = leastMs;
      sequences[place] = sequences[least] ?? 0;
      events[place] = events[least] ?? 0;
      place = least;
    }
    dues[place] = dueMs;
    sequences[place] = sequence;
    events[place] = events[size] ?? 0;
  }

  #grow(): void {
    const capacity = this.#dueMs.length * 2;
    const dues = new Float64Array(capacity);
    const sequences = new Float64Array(capacity);
    const events = new Int32Array(capacity);
    dues.set(this.#dueMs);
    sequences.set(this.#sequence);
    events.set(this.#event);
    this.#dueMs = dues;
    this.#sequence = sequences;
    this.#event = events;
  }
}
