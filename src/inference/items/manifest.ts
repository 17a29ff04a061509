import * as v from 'valibot';
import { closedObject, whole } from '../../core/json-values.ts';

export const TABLE_NAME = /^[a-z][a-z0-9_-]{0,63}$/;

/** What a table may have at most, so that its offsets stay whole numbers and its description readable. */
export const TABLE_LIMITS = { rows: 2 ** 28, width: 4_096, manifestBytes: 1024 * 1024 } as const;

/** The largest FP32 value of which 127 times is one too. */
export const SCALE_MAX = 2.6793883890187504e36;

/** items.<name>.json, format 1 (docs/item-tables.md): what is in items.<name>.bin. */
export const manifestSchema = v.pipe(
  closedObject({
    format: v.literal(1),
    name: v.pipe(v.string(), v.regex(TABLE_NAME)),
    version: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
    rows: v.pipe(whole, v.minValue(0), v.maxValue(TABLE_LIMITS.rows)),
    columns: v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(TABLE_LIMITS.width)),
    datatype: v.picklist(['float32', 'int8']),
    scales: v.optional(v.array(v.pipe(v.number(), v.minValue(0), v.maxValue(SCALE_MAX)))),
    ids: v.picklist(['INT64', 'BYTES']),
    idBytes: v.pipe(whole, v.minValue(0)),
    buckets: v.pipe(whole, v.minValue(1), v.maxValue(TABLE_LIMITS.rows)),
    bytes: v.pipe(whole, v.minValue(1)),
    digest: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hex digits')),
  }),
  v.rawCheck(({ dataset, addIssue }) => {
    if (dataset.typed) for (const message of problemsOf(dataset.value)) addIssue({ message });
  }),
);

/** Description of a table: `rows` items and, after them, the default row. */
export type Manifest = v.InferOutput<typeof manifestSchema>;

interface Shape {
  rows: number;
  columns: readonly string[];
  datatype: 'float32' | 'int8';
  ids: 'INT64' | 'BYTES';
  /** Of all ids together; 8 a row for INT64. */
  idBytes: number;
  /** A power of two. */
  buckets: number;
}

function problemsOf(manifest: Shape & { scales?: readonly number[] | undefined; bytes: number }): string[] {
  const { rows, columns, datatype, scales, ids, idBytes, buckets, bytes } = manifest;
  const problems: string[] = [];
  if ((buckets & (buckets - 1)) !== 0) problems.push(`buckets: ${buckets} is no power of two`);
  if (ids === 'INT64' && idBytes !== 8 * rows)
    problems.push(`idBytes: ${idBytes}, but ${rows} INT64 ids have ${8 * rows}`);
  const scaleCount = datatype === 'int8' ? columns.length : 0;
  if ((scales?.length ?? 0) !== scaleCount)
    problems.push(
      `scales: ${scales?.length ?? 0}, but ${datatype} with ${columns.length} columns has ${scaleCount}`,
    );
  const laidOut = layoutOf(manifest).bytes;
  if (laidOut !== bytes) problems.push(`bytes: ${bytes}, but such a table has ${laidOut}`);
  return problems;
}

/** Where the parts of items.<name>.bin begin, in bytes; each at a multiple of 8. */
export interface TableLayout {
  /** (rows + 1) × width of the datatype, in the order of the source; the last one is the default row. */
  rows: number;
  /** UINT32 [buckets + 1]: where each bucket of the index begins. */
  directory: number;
  /** UINT32 [rows]: the row of each entry of the index. */
  rowOf: number;
  /** BYTES ids only. UINT32 [rows + 1]: where the id of each entry begins. */
  idOffsets: number;
  /** INT64 [rows], or the bytes of the ids: of each entry of the index. */
  ids: number;
  /** Of the whole file. */
  bytes: number;
}

export function layoutOf({ rows, columns, datatype, ids, idBytes, buckets }: Shape): TableLayout {
  const rowsBytes = (rows + 1) * columns.length * ELEMENT_BYTES[datatype];
  const directory = align(rowsBytes);
  const rowOf = align(directory + 4 * (buckets + 1));
  const idOffsets = align(rowOf + 4 * rows);
  const idsAt = align(idOffsets + (ids === 'BYTES' ? 4 * (rows + 1) : 0));
  return { rows: 0, directory, rowOf, idOffsets, ids: idsAt, bytes: align(idsAt + idBytes) };
}

export const ELEMENT_BYTES = { float32: 4, int8: 1 } as const;

export function align(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** A power of two, about half as many as there are rows: two entries a bucket. */
export function bucketsFor(rows: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, rows))) - 1);
}

/** Of 2^k buckets, the one that a hash belongs to is its upper k bits: what to shift it by. 32 where there is one bucket. */
export function shiftOf(buckets: number): number {
  return 32 - Math.log2(buckets);
}
