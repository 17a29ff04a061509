/** Memory that threads and code in WebAssembly share; it goes from thread to thread as it is. */
export interface TableMemory {
  readonly buffer: SharedArrayBuffer;
}

/** What is used of it here: its full types come only with those of a browser. */
declare const WebAssembly: {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => TableMemory;
};

const PAGE_BYTES = 65_536;
const CACHE_LINE_BYTES = 64;
const OUT_BYTES = 64 * 1024;
const VECTOR_BYTES = 16;

/** So many ids are looked up together. */
export const FOUND_AT_ONCE = 256;

/** Where, behind a table, a call has what it needs for its time. One thread at a time looks up in a table. */
export interface TableScratch {
  /** INT64 [FOUND_AT_ONCE] */
  ids: number;
  /** UINT32 [FOUND_AT_ONCE] each: where the bucket of an id begins, and ends. */
  from: number;
  until: number;
  /** UINT32 [FOUND_AT_ONCE]: rows that were found, or are to be copied. */
  rows: number;
  /** What was read ahead; it only keeps the reads from being left out. */
  ahead: number;
  /** So many rows one after another, and a vector more; few enough to stay in the nearest cache. */
  out: number;
  outRows: number;
  /** Of the memory. */
  bytes: number;
}

export function scratchOf(tableBytes: number, rowBytes: number): TableScratch {
  let end = tableBytes;
  const place = (bytes: number): number => {
    const at = Math.ceil(end / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
    end = at + bytes;
    return at;
  };
  const outRows = Math.min(FOUND_AT_ONCE, Math.max(1, Math.floor(OUT_BYTES / rowBytes)));
  return {
    ids: place(8 * FOUND_AT_ONCE),
    from: place(4 * FOUND_AT_ONCE),
    until: place(4 * FOUND_AT_ONCE),
    rows: place(4 * FOUND_AT_ONCE),
    ahead: place(4),
    out: place(outRows * rowBytes + VECTOR_BYTES),
    outRows,
    bytes: end,
  };
}

export function pagesOf(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}

export function tableMemory(bytes: number): TableMemory {
  const pages = pagesOf(bytes);
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}
