export const LANES = 4;
export const VECTOR_BYTES = 16;
/** So many values are looked at together: their places, of two bytes each, fill a vector. */
export const GROUP = 8;
/** Of a row: places have two bytes. */
export const INNER_MAX = 65_536;
const FLOAT_BYTES = 4;
const PLACE_BYTES = 2;
const CACHE_LINE_BYTES = 64;
/** Of x at once: what was just copied is then still in the cache that is nearest. */
const BLOCK_BYTES = 16 * 1024;

/** Where a product has its things in the memory of its kernel, in bytes. The table of places is at 0. */
export interface KernelLayout {
  /** K: values in a row of x. */
  inner: number;
  /** H: values in a row of y. */
  columns: number;
  /** H, or the next multiple of a vector's values. */
  paddedColumns: number;
  /** The places of a row's non-zeros. */
  list: number;
  bias: number;
  /** [K, paddedColumns] */
  weights: number;
  /** So many rows of x at a time. */
  block: number;
  blockRows: number;
  /** All rows of y. */
  result: number;
}

const MASKS = 2 ** GROUP;

export function kernelLayout(inner: number, columns: number): KernelLayout {
  let end = MASKS * VECTOR_BYTES;
  const place = (bytes: number): number => {
    const at = end;
    // More by two vectors: rows are read, and lists and results written, in whole ones.
    end = Math.ceil((at + bytes + 2 * VECTOR_BYTES) / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
    return at;
  };
  const paddedColumns = Math.ceil(columns / LANES) * LANES;
  const blockRows = Math.max(1, Math.floor(BLOCK_BYTES / FLOAT_BYTES / inner));
  return {
    inner,
    columns,
    paddedColumns,
    list: place(inner * PLACE_BYTES),
    bias: place(paddedColumns * FLOAT_BYTES),
    weights: place(inner * paddedColumns * FLOAT_BYTES),
    block: place(blockRows * inner * FLOAT_BYTES),
    blockRows,
    result: place(0),
  };
}

/** Of the memory, where y has so many rows. */
export function bytesFor({ result, columns }: KernelLayout, rows: number): number {
  return result + rows * columns * FLOAT_BYTES + VECTOR_BYTES;
}

/** By bit mask of a group, the places of its values that the mask has. */
export function placesByMask(): Uint16Array {
  const table = new Uint16Array(MASKS * GROUP);
  for (let mask = 0; mask < MASKS; mask += 1) {
    let at = mask * GROUP;
    for (let place = 0; place < GROUP; place += 1) {
      if ((mask & (1 << place)) === 0) continue;
      table[at] = place;
      at += 1;
    }
  }
  return table;
}
