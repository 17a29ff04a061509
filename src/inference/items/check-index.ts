import { MillraceError } from '../../core/errors.ts';
import { hashBytes, hashInt64 } from './item-hash.ts';
import { bucketOf } from './item-index.ts';
import { layoutOf, type Manifest, shiftOf } from './manifest.ts';

/** Entries of one bucket. A lookup reads at most so many; ids that hash evenly come to a dozen. */
const BUCKET_ENTRIES_MAX = 256;

/**
 * Holds a table's index against itself: whoever looks up an id reads nothing outside of the table, and each id is found, once.
 * @throws MillraceError INVALID_MODEL
 */
export function checkIndex(label: string, manifest: Manifest, buffer: SharedArrayBuffer): void {
  const layout = layoutOf(manifest);
  const { rows, buckets, ids } = manifest;
  const directory = new Uint32Array(buffer, layout.directory, buckets + 1);
  const rowOf = new Uint32Array(buffer, layout.rowOf, rows);
  const idOf = ids === 'INT64' ? int64Ids(manifest, buffer) : bytesIds(label, manifest, buffer);
  const shift = shiftOf(buckets);
  const seen = new Uint8Array(rows);
  if (directory[0] !== 0 || directory[buckets] !== rows)
    throw broken(label, 'its directory does not cover all rows');
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const start = directory[bucket] ?? 0;
    const end = directory[bucket + 1] ?? 0;
    if (end < start || end > rows) throw broken(label, `bucket ${bucket} ends before it begins`);
    if (end - start > BUCKET_ENTRIES_MAX)
      throw broken(label, `bucket ${bucket} has ${end - start} entries, more than ${BUCKET_ENTRIES_MAX}`);
    for (let entry = start; entry < end; entry += 1) {
      if (bucketOf(idOf.hash(entry), shift) !== bucket)
        throw broken(label, `entry ${entry} is in another bucket than its id`);
      const row = rowOf[entry] ?? rows;
      if (row >= rows || seen[row] === 1)
        throw broken(label, `entry ${entry} names row ${row}, which is not there or has an id already`);
      seen[row] = 1;
      for (let other = start; other < entry; other += 1)
        if (idOf.isSame(other, entry))
          throw new MillraceError('INVALID_MODEL', `${label} has an id twice`, {
            value: `rows ${rowOf[other]} and ${row}`,
            allowed: 'one row per id',
          });
    }
  }
}

interface Ids {
  hash(entry: number): number;
  isSame(one: number, other: number): boolean;
}

function int64Ids(manifest: Manifest, buffer: SharedArrayBuffer): Ids {
  const halves = new Uint32Array(buffer, layoutOf(manifest).ids, 2 * manifest.rows);
  const half = (at: number): number => halves[at] ?? 0;
  return {
    hash: (entry) => hashInt64(half(2 * entry), half(2 * entry + 1)),
    isSame: (one, other) => half(2 * one) === half(2 * other) && half(2 * one + 1) === half(2 * other + 1),
  };
}

function bytesIds(label: string, manifest: Manifest, buffer: SharedArrayBuffer): Ids {
  const layout = layoutOf(manifest);
  const { rows, idBytes } = manifest;
  const offsets = new Uint32Array(buffer, layout.idOffsets, rows + 1);
  const bytes = new Uint8Array(buffer, layout.ids, idBytes);
  const at = (entry: number): number => offsets[entry] ?? 0;
  if (at(0) !== 0 || at(rows) !== idBytes) throw broken(label, 'its ids do not cover their bytes');
  for (let entry = 0; entry < rows; entry += 1)
    if (at(entry + 1) < at(entry)) throw broken(label, `the id of entry ${entry} ends before it begins`);
  return {
    hash: (entry) => hashBytes(bytes, at(entry), at(entry + 1)),
    isSame: (one, other) =>
      Buffer.compare(bytes.subarray(at(one), at(one + 1)), bytes.subarray(at(other), at(other + 1))) === 0,
  };
}

function broken(label: string, why: string): MillraceError {
  return new MillraceError('INVALID_MODEL', `${label} has a broken index: ${why}`, {
    advice: 'Build it again: millrace items build.',
  });
}
