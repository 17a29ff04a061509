/** What any request must keep to, whatever its model family says. */
export interface RequestLimits {
  requestIdBytesMax: number;
  deadlineMsMax: number;
  /** Of `bucketKey`, `region`, `pin`, and of each key and text of `context` and `experiments`, UTF-8. */
  textBytesMax: number;
  hintsMax: number;
  contextMax: number;
  experimentsMax: number;
  optOutsMax: number;
  /** Contents of all tensors together; a family may allow less, never more. */
  tensorBytesMax: number;
  tensorRankMax: number;
  /** Context keys that are kept; the others are dropped. */
  contextKeys: ReadonlySet<string>;
  /** Partitions of scored-results: `resultPartition` must be below. */
  resultPartitions: number;
}

export const DEFAULT_REQUEST_LIMITS: RequestLimits = {
  requestIdBytesMax: 128,
  deadlineMsMax: 600_000,
  textBytesMax: 256,
  hintsMax: 64,
  contextMax: 32,
  experimentsMax: 32,
  optOutsMax: 8,
  tensorBytesMax: 8 * 1024 * 1024,
  tensorRankMax: 8,
  contextKeys: new Set(),
  resultPartitions: 48,
};
