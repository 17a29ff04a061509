import { MillraceError } from '../core/errors.ts';

/**
 * What a store has under a key:
 * - `missing`: nothing, or nothing any longer;
 * - `too-long`: more bytes than were asked for, which are not read;
 * - `no-bytes`: something of another kind, which nobody put through this port.
 */
export type StoredArtefact =
  | { state: 'found'; bytes: Uint8Array }
  | { state: 'missing' }
  | { state: 'too-long' }
  | { state: 'no-bytes' };

export interface ArtefactEntry {
  key: string;
  /** 1 to `ARTEFACT_BYTES_MAX` of them. */
  bytes: Uint8Array;
}

/** Of one artefact. What is larger took longer to send than to compute. */
export const ARTEFACT_BYTES_MAX = 1024 * 1024;
/** Of one call: what is read comes into memory in one go. */
export const ARTEFACTS_OF_CALL_MAX = 1_024;
const TTL_MAX_MS = 7 * 24 * 3_600 * 1_000;

/**
 * Request artefacts that workers keep for each other. The bytes are opaque to it, and nobody relies on it: what is put may be gone at any time, and whoever
 * reads what is there checks it.
 */
export interface ArtefactStore {
  /**
   * All keys in one round trip.
   * @param bytesMax how long an artefact may be; of a longer one no byte more is read
   * @param limitMs settles by then, give or take a turn of the event loop
   * @returns by position of the keys
   * @throws MillraceError STORE_UNAVAILABLE where no answer came in time, the store refuses, or too much is under way already; TOO_LARGE where
   *   `checkGet` refuses it
   */
  getMany(keys: readonly string[], bytesMax: number, limitMs: number): Promise<StoredArtefact[]>;
  /**
   * All entries in one round trip, each in the place of what was under its key. Without an error all of them are stored; with one, some may be.
   * @param ttlMs from now on they are there so long at most
   * @throws MillraceError STORE_UNAVAILABLE as `getMany` does, and where the store is full; TOO_LARGE where `checkPut` refuses them
   */
  putMany(entries: readonly ArtefactEntry[], ttlMs: number, limitMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Each adapter's check. @throws MillraceError TOO_LARGE */
export function checkGet(keys: readonly string[], bytesMax: number): void {
  checkRange('artefacts of one call', keys.length, 0, ARTEFACTS_OF_CALL_MAX);
  checkRange('bytes of an artefact', bytesMax, 1, ARTEFACT_BYTES_MAX);
}

/** Each adapter's check. @throws MillraceError TOO_LARGE */
export function checkPut(entries: readonly ArtefactEntry[], ttlMs: number): void {
  checkRange('artefacts of one call', entries.length, 0, ARTEFACTS_OF_CALL_MAX);
  for (const { bytes } of entries)
    checkRange('bytes of an artefact', bytes.byteLength, 1, ARTEFACT_BYTES_MAX);
  checkRange('ms that an artefact is kept', ttlMs, 1, TTL_MAX_MS);
}

function checkRange(what: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new MillraceError('TOO_LARGE', `the number of ${what} is out of range`, {
    value,
    allowed: `a whole number from ${min} to ${max}`,
  });
}
