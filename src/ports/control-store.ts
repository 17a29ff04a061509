/** The policy that a router must run. Immutable text lives under its digest; the pointer names digests. */
export interface PolicyRef {
  /** `sha256:<hex>` of the exact bytes. */
  digest: string;
  name: string;
  version: number;
}

export interface PolicyPointer {
  /** Rises with every change, never falls. */
  epoch: number;
  /** Leadership of the controller that wrote it. */
  term: number;
  stable: PolicyRef;
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
  /** Applies only where `pointer.epoch` is higher than the stored one and `pointer.term` not lower; then hints all watchers. */
  writePointer(scope: string, pointer: PolicyPointer): Promise<PointerWrite>;
  /** Stores an immutable document under its digest; storing it again does nothing. */
  putDocument(digest: string, bytes: Uint8Array): Promise<void>;
  readDocument(digest: string): Promise<Uint8Array | undefined>;
  /**
   * Calls `onHint` when the pointer of `scope` may have changed: after a hint from a writer, on every (re)connection.
   * Hints can be lost; whoever needs certainty also polls.
   */
  watch(scope: string, onHint: () => void): Promise<() => Promise<void>>;
  /** `undefined` while another holder has it. */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Short-lived report of a member (a router's ACK or NACK of an epoch), gone after `ttlMs`. */
  report(scope: string, member: string, text: string, ttlMs: number): Promise<void>;
  readReports(scope: string): Promise<ReadonlyMap<string, string>>;
  close(): Promise<void>;
}
