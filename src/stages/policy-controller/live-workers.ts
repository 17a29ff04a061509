const STALE_MS = 3_000;

/** What each worker said last, for as long as it is heard of: processes come and go under new names, and not each says good-bye. */
export class LiveWorkers<T> {
  readonly #said = new Map<string, { what: T; atMs: number }>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /** @param nowMs monotonic, as in all calls */
  heard(worker: string, what: T, nowMs: number): void {
    this.#said.set(worker, { what, atMs: nowMs });
    if (nowMs - this.#sweptAtMs > STALE_MS) this.#sweep(nowMs);
  }

  gone(worker: string): void {
    this.#said.delete(worker);
  }

  live(nowMs: number): T[] {
    this.#sweep(nowMs);
    return [...this.#said.values()].map(({ what }) => what);
  }

  /** Workers that are remembered, those that fell silent lately among them. */
  get size(): number {
    return this.#said.size;
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    for (const [worker, { atMs }] of this.#said) if (nowMs - atMs > STALE_MS) this.#said.delete(worker);
  }
}
