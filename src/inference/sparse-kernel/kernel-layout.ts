export const LANES = 4;
export const VECTOR_BYTES = 16;
const FLOAT_BYTES = 4;
const CACHE_LINE_BYTES = 64;
/** Of x at once: what was just copied is then still in the cache that is nearest. */
const BLOCK_BYTES = 16 * 1024;

/** Where a product has its things in the memory of its kernel, in bytes. The table of shuffles is at 0. */
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

const SHUFFLES = 16;
export const SHUFFLE_BYTES = SHUFFLES * VECTOR_BYTES;

export function kernelLayout(inner: number, columns: number): KernelLayout {
  let end = SHUFFLE_BYTES;
  const place = (values: number): number => {
    const at = end;
    // A vector more: lists, rows and results are written and read by whole vectors.
    end = Math.ceil((at + values * FLOAT_BYTES + VECTOR_BYTES) / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
    return at;
  };
  const paddedColumns = Math.ceil(columns / LANES) * LANES;
  const blockRows = Math.max(1, Math.floor(BLOCK_BYTES / FLOAT_BYTES / inner));
  return {
    inner,
    columns,
    paddedColumns,
    list: place(inner),
    bias: place(paddedColumns),
    weights: place(inner * paddedColumns),
    block: place(blockRows * inner),
    blockRows,
    result: place(0),
  };
}

/** Of the memory, where y has so many rows. */
export function bytesFor({ result, columns }: KernelLayout, rows: number): number {
  return result + rows * columns * FLOAT_BYTES + VECTOR_BYTES;
}

/** By bit mask of a vector's values, the shuffle that packs those to the left. */
export function shuffles(): Uint8Array {
  const table = new Uint8Array(SHUFFLE_BYTES);
  for (let mask = 0; mask < SHUFFLES; mask += 1) {
    let at = mask * VECTOR_BYTES;
    for (let lane = 0; lane < LANES; lane += 1) {
      if ((mask & (1 << lane)) === 0) continue;
      for (let byte = 0; byte < FLOAT_BYTES; byte += 1) table[at + byte] = lane * FLOAT_BYTES + byte;
      at += FLOAT_BYTES;
    }
  }
  return table;
}
