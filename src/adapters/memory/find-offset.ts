/**
 * Index of the first of `records` at or after an offset, looked for from `first` on; their offsets rise. Without holes the place is known; where some
 * are missing it lies before that, and is searched for.
 */
export function findOffset(
  records: readonly { readonly offset: number }[],
  first: number,
  offset: number,
): number {
  const oldest = records[first];
  if (oldest === undefined || offset <= oldest.offset) return first;
  const guess = first + (offset - oldest.offset);
  if (records[guess]?.offset === offset) return guess;
  let from = first;
  let to = Math.min(guess, records.length);
  while (from < to) {
    const middle = (from + to) >> 1;
    const record = records[middle];
    if (record !== undefined && record.offset < offset) from = middle + 1;
    else to = middle;
  }
  return from;
}
