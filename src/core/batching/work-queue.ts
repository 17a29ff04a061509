/** What the queue needs to know of a piece of work; `payload` is the caller's. */
export interface Work<T> {
  /** On the worker's monotonic clock: when the budget runs out. */
  deadlineMs: number;
  /** Optional work (the enhanced variant) runs after all baseline work. */
  optional: boolean;
  /** Only work of the same key runs in one batch: model, version, kernel, memory domain. */
  batchKey: string;
  candidates: number;
  predictedMs: number;
  payload: T;
}

/** Whether the first is to run before the second. */
export type WorkOrder<T> = (a: Work<T>, b: Work<T>) => boolean;

/** Baseline first, earliest deadline first within each. */
export function isBaselineOrDueBefore<T>(a: Work<T>, b: Work<T>): boolean {
  return a.optional === b.optional ? a.deadlineMs < b.deadlineMs : b.optional;
}

/**
 * A binary heap in the given order; ties in order of arrival.
 * Keeps the sum of predicted work, so that the wait of the next arrival is known.
 */
export class WorkQueue<T> {
  readonly #isBefore: WorkOrder<T>;
  readonly #heap: { work: Work<T>; arrival: number }[] = [];
  #arrivals = 0;
  #predictedMs = 0;

  constructor(isBefore: WorkOrder<T> = isBaselineOrDueBefore) {
    this.#isBefore = isBefore;
  }

  get length(): number {
    return this.#heap.length;
  }

  /** Predicted work in the queue, ms. */
  get predictedMs(): number {
    return this.#predictedMs;
  }

  /** In no order. */
  *[Symbol.iterator](): Generator<Work<T>> {
    for (const { work } of this.#heap) yield work;
  }

  push(work: Work<T>): void {
    this.#arrivals += 1;
    this.#insert({ work, arrival: this.#arrivals });
  }

  peek(): Work<T> | undefined {
    return this.#heap[0]?.work;
  }

  some(match: (work: Work<T>) => boolean): boolean {
    return this.#heap.some(({ work }) => match(work));
  }

  pop(): Work<T> | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#sink();
    }
    this.#predictedMs = this.#heap.length === 0 ? 0 : this.#predictedMs - first.work.predictedMs;
    return first.work;
  }

  /** Removes and returns what `match` picks (partitions that went away). */
  remove(match: (work: Work<T>) => boolean): Work<T>[] {
    const kept: { work: Work<T>; arrival: number }[] = [];
    const removed: Work<T>[] = [];
    for (const entry of this.#heap.splice(0)) {
      if (match(entry.work)) removed.push(entry.work);
      else kept.push(entry);
    }
    this.#predictedMs = 0;
    for (const entry of kept) this.#insert(entry);
    return removed;
  }

  /** The order says something else than when work was pushed. */
  sort(): void {
    this.remove(() => false);
  }

  #insert(entry: { work: Work<T>; arrival: number }): void {
    this.#predictedMs += entry.work.predictedMs;
    this.#heap.push(entry);
    let child = this.#heap.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#swapIfBefore(child, parent)) return;
      child = parent;
    }
  }

  #sink(): void {
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      if (left >= this.#heap.length) return;
      const right = left + 1;
      const least = right < this.#heap.length && this.#before(right, left) ? right : left;
      if (!this.#swapIfBefore(least, parent)) return;
      parent = least;
    }
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#before(a, b)) return false;
    const first = this.#heap[a];
    const second = this.#heap[b];
    if (first !== undefined && second !== undefined) {
      this.#heap[a] = second;
      this.#heap[b] = first;
    }
    return true;
  }

  #before(a: number, b: number): boolean {
    const x = this.#heap[a];
    const y = this.#heap[b];
    if (x === undefined || y === undefined) return false;
    if (this.#isBefore(x.work, y.work)) return true;
    return !this.#isBefore(y.work, x.work) && x.arrival < y.arrival;
  }
}
