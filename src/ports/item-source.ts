/** One item as it stands in a file. */
export interface ItemRow {
  id: string;
  /** Finite as FP32, one per column of the source. */
  values: ArrayLike<number>;
}

/** Which columns of a file to read: the id, and the features by their names or by what their names begin with. */
export interface ItemColumns {
  id: string;
  features: { names: readonly string[] } | { prefix: string };
}

/** The items of a file, in its order. */
export interface ItemSource {
  /** Names of the features, in the order of the values. */
  readonly columns: readonly string[];
  /** Of `done`: bytes or rows. */
  readonly total: number;
  /** How far `rows` came. */
  done(): number;
  /**
   * The items, some at a time; what was given is not read again.
   * @throws MillraceError INVALID_CONFIG with the line or row, and the column, of what is no item
   */
  rows(): AsyncIterable<readonly ItemRow[]>;
  close(): Promise<void>;
}
