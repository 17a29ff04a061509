/** More names are not compared: a writer of both lists chooses how many there are of each. */
const NAMES_COMPARED_MAX = 256;

/**
 * The name that a writer probably meant: the one with the least edit distance, if it is close enough to be a
 * slip of the pen (at most a third of the letters, and at least one letter in common). Looks at the first 256 names.
 */
export function nearestName(written: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  let compared = 0;
  for (const name of names) {
    if (++compared > NAMES_COMPARED_MAX) break;
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance) {
      bestDistance = distance;
      best = name;
    }
  }
  const length = Math.max(Math.min(written.length, COMPARED_LENGTH_MAX), best?.length ?? 0);
  return bestDistance <= Math.max(1, Math.floor(length / 3)) && bestDistance < length ? best : undefined;
}

const COMPARED_LENGTH_MAX = 64;

/** Levenshtein's distance over the first 64 letters of both. */
function editDistance(left: string, right: string): number {
  const a = left.slice(0, COMPARED_LENGTH_MAX);
  const b = right.slice(0, COMPARED_LENGTH_MAX);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** What an error says to a name that does not exist: `Did you mean "when"?`, if one is near. */
export function didYouMean(written: string, names: Iterable<string>): { advice?: string } {
  const near = nearestName(written, names);
  return near === undefined ? {} : { advice: `Did you mean "${near}"?` };
}
