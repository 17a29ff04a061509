interface Place<V> {
  readonly index: number;
  readonly value: V;
}

/**
 * A map that only grows, as a value: `with` gives another one and leaves this as it was, for the price of one insertion. What grew out of one another
 * shares its entries; each sees the first `size` of them, and only the newest adds to them, so whoever grows an older one begins with a copy.
 */
export class GrowingMap<K, V> {
  readonly size: number;
  readonly #shared: Map<K, Place<V>>;

  private constructor(shared: Map<K, Place<V>>, size: number) {
    this.#shared = shared;
    this.size = size;
  }

  static of<K, V>(entries: Iterable<readonly [K, V]>): GrowingMap<K, V> {
    let map = new GrowingMap<K, V>(new Map(), 0);
    for (const [key, value] of entries) map = map.with(key, value);
    return map;
  }

  has(key: K): boolean {
    return this.#placeOf(key) !== undefined;
  }

  get(key: K): V | undefined {
    return this.#placeOf(key)?.value;
  }

  /** The value that a key has stays its value. */
  with(key: K, value: V): GrowingMap<K, V> {
    if (this.has(key)) return this;
    // Who decides grows a state to see what follows, and then grows the same by the same.
    const place = this.#shared.get(key);
    const isThere = place !== undefined && place.index === this.size && Object.is(place.value, value);
    if (isThere) return new GrowingMap(this.#shared, this.size + 1);
    const shared = this.#isNewest() ? this.#shared : new Map(this.#places());
    shared.set(key, { index: this.size, value });
    return new GrowingMap(shared, this.size + 1);
  }

  /** In the order in which they came. */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (const [key, { value }] of this.#places()) yield [key, value];
  }

  *#places(): Generator<[K, Place<V>]> {
    for (const entry of this.#shared) {
      if (entry[1].index >= this.size) return;
      yield entry;
    }
  }

  #placeOf(key: K): Place<V> | undefined {
    const place = this.#shared.get(key);
    return place !== undefined && place.index < this.size ? place : undefined;
  }

  /** What is empty may be a constant, which must hold nothing of what grows out of it. */
  #isNewest(): boolean {
    return this.size > 0 && this.#shared.size === this.size;
  }
}
