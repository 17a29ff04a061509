/** A source's sequence numbers that are remembered. */
const SEEN_MAX = 64;
/** Processes come and go for months: the one that was heard of longest ago is forgotten. */
const SOURCES_MAX = 4_096;

/** Remembers which windows of routers or workers came, so that one that comes twice counts once. */
export class SeenWindows {
  readonly #seen = new Map<string, number[]>();

  /** Whether this window of the source comes for the first time. */
  isNew(source: string, sequence: number): boolean {
    const seen = this.#seen.get(source) ?? [];
    if (seen.includes(sequence)) return false;
    seen.push(sequence);
    if (seen.length > SEEN_MAX) seen.shift();
    this.#seen.delete(source);
    this.#seen.set(source, seen);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > SOURCES_MAX && oldest !== undefined) this.#seen.delete(oldest);
    return true;
  }
}
