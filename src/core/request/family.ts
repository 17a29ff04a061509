import type { Datatype } from './tensor.ts';

export type Variant = 'baseline' | 'enhanced';

/**
 * Which rows an input has, and who makes it:
 * - `request`: sent in `requestTensors`, once per request;
 * - `candidate`: sent in `candidateTensors`, one row per candidate, best candidate first;
 * - `request-index`: the request row that a candidate belongs to; computed by millrace, never sent;
 * - `request-length`: how many rows of a sequence the request has; derived from the sequence tensor's first free
 *   dimension where the request does not send it.
 */
export type InputSide = 'request' | 'candidate' | 'request-index' | 'request-length';

export interface InputContract {
  name: string;
  side: InputSide;
  datatype: Datatype;
  /**
   * Shape of one request's tensor, `-1` where the request decides: `user` [64], `history` [-1, 32], `item` [-1, 32],
   * a length []. The axis that counts the requests of a batch is not part of it.
   */
  shape: readonly number[];
  /**
   * False where a request may leave the input out: a sequence then has 0 rows, and other rows come from an item table or a feature source.
   * Not read for `request-index` and `request-length`.
   */
  required: boolean;
  /** `candidate` only: rows that are not sent come from an item table or a feature source by `candidateIds`, which then are needed. */
  byIds?: boolean;
  /** `request` only: a row that is not sent comes from a feature source by this id, which then is needed: `bucketKey` or `context.<key>`. */
  idFrom?: string;
  /** `request-length` only: the sequence input that it counts; the family's first sequence where absent. */
  lengthOf?: string;
}

export interface FamilyVersion {
  version: string;
  variant: Variant;
}

/** What a request to a model family must look like. */
export interface FamilyContract {
  family: string;
  /** Budget of a request that names no deadline. */
  slaMs: number;
  versions: readonly FamilyVersion[];
  candidatesMax: number;
  /** Largest size of a free dimension of a request-side input. */
  sequenceLengthMax: number;
  /** Contents of all tensors of one request together. */
  tensorBytesMax: number;
  inputs: readonly InputContract[];
}

/** A sequence is a request-side input with a free dimension; its first free dimension counts its rows. */
export function isSequence(input: InputContract): boolean {
  return input.side === 'request' && input.shape.includes(-1);
}

export interface ModelName {
  family: string;
  version: string | undefined;
}

/** Reads `family` or `family@version`. */
export function parseModelName(model: string): ModelName {
  const at = model.lastIndexOf('@');
  return at < 0
    ? { family: model, version: undefined }
    : { family: model.slice(0, at), version: model.slice(at + 1) };
}
