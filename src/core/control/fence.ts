/** Of a log that several leaders wrote: once a leader has written, what one of a lower term still gets into the log is void. */
export class TermFence {
  #highest = 0;

  /** Of the entries in their order: whether this one counts. */
  admits({ term }: { readonly term: number }): boolean {
    if (term < this.#highest) return false;
    this.#highest = term;
    return true;
  }
}

/** The entries that count, in their order. */
export function inForce<T extends { readonly term: number }>(entries: Iterable<T>): T[] {
  const fence = new TermFence();
  return [...entries].filter((entry) => fence.admits(entry));
}

/**
 * The entries without what a producer that tried again appended twice. The id alone does not tell: earlier versions gave one id to what was asked and
 * to what followed from it, and of two leaders that take one term at once both must be seen.
 */
export function withoutRepeats<
  T extends { readonly eventId: string; readonly actor: string; readonly evidence: string },
>(entries: Iterable<T>): T[] {
  const kept: T[] = [];
  const byId = new Map<string, T[]>();
  for (const entry of entries) {
    const known = byId.get(entry.eventId) ?? [];
    if (known.some(({ actor, evidence }) => actor === entry.actor && evidence === entry.evidence)) continue;
    byId.set(entry.eventId, [...known, entry]);
    kept.push(entry);
  }
  return kept;
}
