/**
 * Of a log that several leaders wrote, the entries that count, in their order: once a leader has written, what one of a lower term still gets
 * into the log is void.
 */
export function inForce<T extends { readonly term: number }>(entries: Iterable<T>): T[] {
  const kept: T[] = [];
  let highest = 0;
  for (const entry of entries) {
    if (entry.term < highest) continue;
    highest = entry.term;
    kept.push(entry);
  }
  return kept;
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
