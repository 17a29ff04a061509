/** Sixteen times the longest policy: whoever can write to the store must not fill the memory of those who read it. */
export const DOCUMENT_BYTES_MAX = 1_048_576;

/**
 * The highest epoch, term or beat of a pointer: 2^50. More is nothing that a controller counted up to: a pointer that says so cannot be read, and is
 * written again from the log, rather than followed to where no record can say the next one.
 */
export const COUNT_MAX = 2 ** 50;

/** The longest lease of a canary: what timers can wait for. */
export const LEASE_MS_MAX = 2 ** 31 - 1;

/** The policy that a router must run. Immutable text lives under its digest; the pointer names digests. */
export interface PolicyRef {
  /** `sha256:<hex>` of the exact bytes. */
  digest: string;
  name: string;
  version: number;
}

/**
 * The policy that is on its way to live, and how much of the traffic is its: none, but decided beside the stable one (`shadow`), or `percent` of
 * the units (`canary`). The leader raises `beat` at the same epoch; a router obeys only while it saw a new beat, or a new epoch, less than
 * `leaseMs` ago by its own monotonic clock. So a controller, store or connection that died sends routers back to the stable policy.
 */
export interface CanaryPointer {
  policy: PolicyRef;
  mode: 'shadow' | 'canary';
  /** 0 to 100; only `canary` reads it. */
  percent: number;
  /** Draws the units of this rollout; another rollout, another salt. */
  salt: string;
  /** What is drawn: a bucket key keeps its arm for the whole rollout, a request id does not. */
  unit: 'bucketKey' | 'requestId';
  leaseMs: number;
  beat: number;
}

export interface PolicyPointer {
  /** Rises with every change, never falls. */
  epoch: number;
  /** Leadership of the controller that wrote it. */
  term: number;
  stable: PolicyRef;
  canary: CanaryPointer | undefined;
}

export type PointerWrite = { status: 'applied' } | { status: 'stale'; current: PolicyPointer };

/** A named lease with a short payload; whoever holds it renews it well within its time to live. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** False when the lease was lost to somebody else. */
  renew(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * The fast copy of what the control log says (Redis, or memory). It may be away, empty or old at any time:
 * callers keep their last-known-good and apply only what has a higher epoch.
 * Every call throws MillraceError STORE_UNAVAILABLE (retryable) when the store does not answer in time.
 */
export interface ControlStore {
  readPointer(scope: string): Promise<PolicyPointer | undefined>;
  /**
   * Applies only where `pointer.epoch` is higher than the stored one and `pointer.term` not lower; or where it means the same and its `term` is
   * higher, by which a new leader takes the store over from the one before; or, to renew a canary, where nothing but its `beat` differs from the
   * stored one and is higher. Then hints all watchers. Anything else is stale.
   */
  writePointer(scope: string, pointer: PolicyPointer): Promise<PointerWrite>;
  /**
   * Stores an immutable document under its digest; storing it again does nothing.
   * @throws MillraceError TOO_LARGE for more than DOCUMENT_BYTES_MAX
   */
  putDocument(digest: string, bytes: Uint8Array): Promise<void>;
  /**
   * At most DOCUMENT_BYTES_MAX bytes leave the store, whatever is under the digest.
   * @throws MillraceError TOO_LARGE where there is more: somebody else wrote it
   */
  readDocument(digest: string): Promise<Uint8Array | undefined>;
  /** Whether there is a document under that digest, without reading it. */
  hasDocument(digest: string): Promise<boolean>;
  /** Stores who vouches for the document of this digest, in place of who did before: a text may be signed anew. */
  putEnvelope(digest: string, bytes: Uint8Array): Promise<void>;
  /** Nobody's memory is filled by it: of more than ENVELOPE_BYTES_MAX, which is no envelope, the end may be missing. */
  readEnvelope(digest: string): Promise<Uint8Array | undefined>;
  /** Stores the signed commands that took keys out. */
  putRevocations(bytes: Uint8Array): Promise<void>;
  /** The same, of more than REVOCATIONS_BYTES_MAX. */
  readRevocations(): Promise<Uint8Array | undefined>;
  /**
   * Calls `onHint` when the pointer of `scope` may have changed: after a hint from a writer, on every (re)connection.
   * Hints can be lost; whoever needs certainty also polls.
   */
  watch(scope: string, onHint: () => void): Promise<() => Promise<void>>;
  /**
   * Of the names the first that this holder has already, else the first that nobody has, in one command however many there are; `undefined` while
   * others have all of them.
   */
  acquireLease(names: readonly string[], holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Short-lived report of a member (a router's ACK or NACK of an epoch), gone after `ttlMs`. */
  report(scope: string, member: string, text: string, ttlMs: number): Promise<void>;
  readReports(scope: string): Promise<ReadonlyMap<string, string>>;
  close(): Promise<void>;
}
