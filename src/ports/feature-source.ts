/** How a store names an entity. There a whole number and its decimal text are two entities: the view says which of them its ids are. */
export type EntityId = bigint | string;

/** What is read of each entity. */
export interface FeatureView {
  view: string;
  /** By which name the store knows the view's entity; Feast calls it the join key. */
  joinKey: string;
  /** In the order of the row; one that is a list gives several values. */
  features: readonly string[];
  /** Values of a row. */
  width: number;
  /** A row whose event is longer ago is stale, and so is one that does not say when that was; any age will do where it is left out. */
  maxAgeMs?: number | undefined;
}

export interface FeatureQuery {
  of: FeatureView;
  /** An id may be there several times; it is read once. */
  ids: readonly EntityId[];
}

/**
 * - `missing`: the store lacks the entity, or one of the features, or holds a null;
 * - `stale`: older than the view takes;
 * - `invalid`: it holds what is no number, no finite FP32 value, or more or fewer values than the row has.
 */
export const ROW_STATES = ['found', 'missing', 'stale', 'invalid'] as const;
export type RowState = (typeof ROW_STATES)[number];

/** The rows of one query, in the order of its ids. */
export interface FeatureRows {
  /** FP32 [ids, width]; zeros where a row was not found. */
  values: Float32Array;
  states: readonly RowState[];
}

/** An online store of features, by entity. What it holds of one entity is never another's fault: each row has a state of its own. */
export interface FeatureSource {
  /**
   * All queries in one round trip.
   * @param limitMs settles by then, give or take a turn of the event loop
   * @returns by position of the queries
   * @throws MillraceError STORE_UNAVAILABLE where no answer came in time, the store refuses, or too much is being read already
   */
  read(queries: readonly FeatureQuery[], limitMs: number): Promise<FeatureRows[]>;
  close(): Promise<void>;
}

/** An input of a model version whose rows come from a feature source where a request does not send them. */
export interface SourcedInput {
  input: string;
  side: 'request' | 'candidate';
  /** Of one row, without the axis that counts candidates. */
  rowShape: readonly number[];
  of: FeatureView;
  /** How the store names its entities, whichever way a request writes them. */
  ids: 'INT64' | 'STRING';
  /** `candidateIds`, `bucketKey` or `context.<key>`. */
  idFrom: string;
  /** What becomes of a row that is not found: the default row stands in, or the request is refused. */
  missing: 'default' | 'reject';
  defaultRow: Float32Array;
}
