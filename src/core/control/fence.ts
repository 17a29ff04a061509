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
