const LOAD = 4;

/** From 32-bit hashes to slots 0 … capacity − 1: open addressing with linear probing in typed arrays, never more than a quarter full. */
export class SlotIndex {
  readonly #mask: number;
  /** slot + 1; 0 where nothing is. */
  readonly #cells: Int32Array;
  readonly #hashes: Int32Array;

  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(capacity * LOAD));
    this.#mask = size - 1;
    this.#cells = new Int32Array(size);
    this.#hashes = new Int32Array(capacity);
  }

  /** The slot of a hash (signed 32-bit), or −1. */
  find(hash: number): number {
    for (let i = hash & this.#mask; ; i = (i + 1) & this.#mask) {
      const slot = at(this.#cells, i) - 1;
      if (slot < 0 || at(this.#hashes, slot) === hash) return slot;
    }
  }

  hashOf(slot: number): number {
    return at(this.#hashes, slot);
  }

  /** The hash must not be there yet. */
  insert(hash: number, slot: number): void {
    let i = hash & this.#mask;
    while (at(this.#cells, i) !== 0) i = (i + 1) & this.#mask;
    this.#cells[i] = slot + 1;
    this.#hashes[slot] = hash;
  }

  /** The slot belongs to another hash from now on. */
  replace(slot: number, hash: number): void {
    this.#remove(slot);
    this.insert(hash, slot);
  }

  /** Backward-shift deletion: what was pushed past the freed cell moves up, so that no mark of a deletion is needed (Knuth 6.4, algorithm R). */
  #remove(slot: number): void {
    let hole = at(this.#hashes, slot) & this.#mask;
    while (at(this.#cells, hole) !== slot + 1) hole = (hole + 1) & this.#mask;
    for (let i = (hole + 1) & this.#mask; at(this.#cells, i) !== 0; i = (i + 1) & this.#mask) {
      const home = at(this.#hashes, at(this.#cells, i) - 1) & this.#mask;
      if (((i - home) & this.#mask) >= ((i - hole) & this.#mask)) {
        this.#cells[hole] = at(this.#cells, i);
        hole = i;
      }
    }
    this.#cells[hole] = 0;
  }
}

function at(values: Int32Array, index: number): number {
  return values[index] ?? 0;
}
