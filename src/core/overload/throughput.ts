/** What was done lately counts as much as this much time under load; before any of it, the expectation does. */
const MEMORY_MS = 2_000;
/** Of the memory: how long the expectation is believed against the first completions. */
const EXPECTATION_MS = 200;
/** Of the expectation: servers that all hang still count as this much, so that waits stay finite. */
const FLOOR = 1e-3;

/**
 * How much predicted work is completed per ms while work waits: what all servers together can do, however many of them live and whatever the
 * predictions are worth. It begins with what is expected, and keeps the last estimate while nothing waits.
 */
export class Throughput {
  readonly #floor: number;
  #completedMs: number;
  #elapsedMs = EXPECTATION_MS;

  /** @param expected ms of predicted work per ms: the servers, where all have speed 1 */
  constructor(expected: number) {
    this.#floor = expected * FLOOR;
    this.#completedMs = expected * EXPECTATION_MS;
  }

  /** @param completedMs predicted work that ended in `elapsedMs`, all of which some work waited */
  observe(completedMs: number, elapsedMs: number): void {
    const kept = Math.min(1, MEMORY_MS / (this.#elapsedMs + elapsedMs));
    this.#completedMs = kept * (this.#completedMs + completedMs);
    this.#elapsedMs = kept * (this.#elapsedMs + elapsedMs);
  }

  perMs(): number {
    return Math.max(this.#floor, this.#completedMs / this.#elapsedMs);
  }
}
