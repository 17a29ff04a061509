/** A first-in-first-out queue that lets go of what was taken at once, however much is behind it. Every call takes constant time a piece, amortized. */
export class Fifo<T> {
  #slots: (T | undefined)[] = [];
  /** What lies before it was taken: slots that hold nothing. */
  #first = 0;

  get length(): number {
    return this.#slots.length - this.#first;
  }

  /** The piece so many places behind the first. */
  at(place: number): T | undefined {
    return this.#slots[this.#first + place];
  }

  push(piece: T): void {
    this.#slots.push(piece);
  }

  /** Queues all pieces. Into an empty queue none is copied: the array is the queue's from then on. */
  pushAll(pieces: T[]): void {
    if (this.length === 0) {
      this.#slots = pieces;
      this.#first = 0;
      return;
    }
    for (const piece of pieces) this.#slots.push(piece);
  }

  /** Takes the first piece out. */
  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const piece = this.#slots[this.#first];
    this.#release(1);
    return piece;
  }

  /** Takes the first `count` pieces out, or all there are. */
  take(count: number): T[] {
    const taken =
      this.#first === 0 && count >= this.#slots.length
        ? this.#slots
        : this.#slots.slice(this.#first, this.#first + count);
    this.#release(taken.length);
    // Only slots before the first are empty.
    return taken as T[];
  }

  #release(count: number): void {
    const first = this.#first + count;
    if (first * 2 >= this.#slots.length) {
      this.#slots = this.#slots.slice(first);
      this.#first = 0;
      return;
    }
    this.#slots.fill(undefined, this.#first, first);
    this.#first = first;
  }
}
