/** A binary heap: what comes before all else by `isBefore` is taken out first. */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean;
  #items: T[] = [];

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get length(): number {
    return this.#items.length;
  }

  /** In no order. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items[Symbol.iterator]();
  }

  push(item: T): void {
    const items = this.#items;
    let child = items.length;
    items.push(item);
    while (child > 0) {
      const parent = (child - 1) >> 1;
      const above = items[parent];
      if (above === undefined || !this.#isBefore(item, above)) break;
      items[child] = above;
      child = parent;
    }
    items[child] = item;
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (last !== undefined && this.#items.length > 0) this.#sink(last);
    return first;
  }

  /** Empties it, and gives what was in it, in no order. */
  clear(): T[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }

  #sink(item: T): void {
    const items = this.#items;
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      const child = this.#firstOf(left, left + 1);
      const below = items[child];
      if (below === undefined || !this.#isBefore(below, item)) break;
      items[parent] = below;
      parent = child;
    }
    items[parent] = item;
  }

  #firstOf(left: number, right: number): number {
    const a = this.#items[left];
    const b = this.#items[right];
    return a !== undefined && b !== undefined && this.#isBefore(b, a) ? right : left;
  }
}
