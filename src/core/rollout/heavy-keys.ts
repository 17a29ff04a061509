import { MillraceError } from '../errors.ts';
import { murmur3OfPair } from './murmur3.ts';
import { SlotIndex } from './slot-index.ts';

const CAPACITY_MAX = 2 ** 20;

export interface HeavyKeysOptions {
  /** How many keys count as heavy at most. */
  readonly heaviest?: number;
  /** Keys that are counted at a time, > heaviest. A key with more than 1/capacity of the requests is always among them. */
  readonly capacity?: number;
}

/**
 * The heaviest keys of a stream, so that they can be left out of an analysis that takes requests for independent: Space-Saving
 * (Metwally, Agrawal, El Abbadi, ICDT 2005). Counters lie sorted in an array, in groups of equal count: to count one more, swap with the
 * first of the group. So every request costs the same, and a counter's place is its rank. Keys are held as 32-bit hashes: the memory does
 * not grow with them, and two of 100 000 keys that share a hash count as one.
 */
export class HeavyKeys {
  readonly #heaviest: number;
  readonly #capacity: number;
  readonly #slotOf: SlotIndex;
  /** Per rank: which counter lies there, and the group of its count. */
  readonly #slotAt: Int32Array;
  readonly #groupAt: Int32Array;
  /** Per counter: the rank, and how much of the count it may have taken over from others. */
  readonly #rankOf: Int32Array;
  readonly #error: Int32Array;
  /** Per group: its first rank and its count. */
  readonly #start: Int32Array;
  readonly #count: Int32Array;
  readonly #freeGroups: Int32Array;
  #free: number;
  #used = 0;
  #total = 0;

  constructor({ heaviest = 50, capacity = 1_024 }: HeavyKeysOptions = {}) {
    if (!Number.isInteger(capacity) || !Number.isInteger(heaviest) || heaviest < 1 || capacity <= heaviest)
      throw new MillraceError('INVALID_CONFIG', 'More keys must be counted than count as heavy', {
        value: { heaviest, capacity },
        allowed: '1 ≤ heaviest < capacity',
      });
    if (capacity > CAPACITY_MAX)
      throw new MillraceError('INVALID_CONFIG', 'Too many keys to count', {
        value: capacity,
        allowed: `capacity ≤ ${CAPACITY_MAX}`,
      });
    this.#heaviest = heaviest;
    this.#capacity = capacity;
    this.#slotOf = new SlotIndex(capacity);
    this.#slotAt = new Int32Array(capacity);
    this.#groupAt = new Int32Array(capacity);
    this.#rankOf = new Int32Array(capacity);
    this.#error = new Int32Array(capacity);
    // One group more than counters: a counter joins its next group before its last one is free.
    this.#start = new Int32Array(capacity + 1);
    this.#count = new Int32Array(capacity + 1);
    this.#freeGroups = Int32Array.from({ length: capacity + 1 }, (_, group) => group);
    this.#free = capacity + 1;
  }

  /** Counts one request. True where its key is one of the heaviest, and surely has more than 1/capacity of the requests. */
  add(key: string): boolean {
    const hash = murmur3OfPair('', key) | 0;
    let slot = this.#slotOf.find(hash);
    if (slot < 0) slot = this.#used < this.#capacity ? this.#open(hash) : this.#takeOver(hash);
    const count = this.#countOneMore(slot);
    this.#total += 1;
    // Old heavy keys are forgotten, and counts stay far from 2^31.
    if (this.#total >= this.#capacity * 1_024) this.#halve();
    return this.#isHeavy(slot, count);
  }

  /** Hashes of the heaviest keys with bounds of their counts: count − error ≤ true ≤ count. The heaviest come first. */
  heaviest(): { hash: number; count: number; error: number }[] {
    const listed: { hash: number; count: number; error: number }[] = [];
    for (let rank = 0; rank < Math.min(this.#used, this.#heaviest); rank++) {
      const slot = at(this.#slotAt, rank);
      const count = at(this.#count, at(this.#groupAt, rank));
      if (this.#isHeavy(slot, count))
        listed.push({ hash: this.#slotOf.hashOf(slot) >>> 0, count, error: at(this.#error, slot) });
    }
    return listed;
  }

  #isHeavy(slot: number, count: number): boolean {
    return (
      at(this.#rankOf, slot) < this.#heaviest &&
      (count - at(this.#error, slot)) * this.#capacity > this.#total
    );
  }

  /** A new counter at the end, with count 0 until it is counted. */
  #open(hash: number): number {
    const slot = this.#used;
    this.#used += 1;
    this.#slotOf.insert(hash, slot);
    this.#error[slot] = 0;
    this.#place(slot, slot);
    const above = slot > 0 ? at(this.#groupAt, slot - 1) : -1;
    const joins = above >= 0 && at(this.#count, above) === 0;
    this.#groupAt[slot] = joins ? above : this.#newGroup(slot, 0);
    return slot;
  }

  /** The last counter is of the smallest count: its key is forgotten, the new one takes it over, and may be wrong by that much. */
  #takeOver(hash: number): number {
    const rank = this.#used - 1;
    const slot = at(this.#slotAt, rank);
    this.#slotOf.replace(slot, hash);
    this.#error[slot] = at(this.#count, at(this.#groupAt, rank));
    return slot;
  }

  #countOneMore(slot: number): number {
    const rank = at(this.#rankOf, slot);
    const group = at(this.#groupAt, rank);
    const first = at(this.#start, group);
    const count = at(this.#count, group) + 1;
    this.#place(at(this.#slotAt, first), rank);
    this.#place(slot, first);
    const isLast = first + 1 >= this.#used || at(this.#groupAt, first + 1) !== group;
    if (isLast) this.#release(group);
    else this.#start[group] = first + 1;
    const above = first > 0 ? at(this.#groupAt, first - 1) : -1;
    const joins = above >= 0 && at(this.#count, above) === count;
    this.#groupAt[first] = joins ? above : this.#newGroup(first, count);
    return count;
  }

  /** Halves every count. The order stays; groups that become equal merge. */
  #halve(): void {
    const counts = Int32Array.from(
      { length: this.#used },
      (_, rank) => at(this.#count, at(this.#groupAt, rank)) >> 1,
    );
    for (let rank = 0; rank < this.#used; rank++) this.#release(at(this.#groupAt, rank), rank);
    let group = -1;
    for (let rank = 0; rank < this.#used; rank++) {
      const count = at(counts, rank);
      if (group < 0 || at(this.#count, group) !== count) group = this.#newGroup(rank, count);
      this.#groupAt[rank] = group;
      const slot = at(this.#slotAt, rank);
      this.#error[slot] = at(this.#error, slot) >> 1;
    }
    this.#total >>= 1;
  }

  #place(slot: number, rank: number): void {
    this.#slotAt[rank] = slot;
    this.#rankOf[slot] = rank;
  }

  #newGroup(first: number, count: number): number {
    this.#free -= 1;
    const group = at(this.#freeGroups, this.#free);
    this.#start[group] = first;
    this.#count[group] = count;
    return group;
  }

  /** With a rank: only from the group's first one, so that a walk over all ranks frees each group once. */
  #release(group: number, rank = at(this.#start, group)): void {
    if (rank !== at(this.#start, group)) return;
    this.#freeGroups[this.#free] = group;
    this.#free += 1;
  }
}

function at(values: Int32Array, index: number): number {
  return values[index] ?? 0;
}
