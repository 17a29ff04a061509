import type { PolicyPointer } from './control-store.ts';

/** A pointer whose policies passed every check, and all that they passed by. */
export interface KnownGood {
  pointer: PolicyPointer;
  /** Exact bytes by digest: of those policies, and of what they were tuned from. */
  documents: ReadonlyMap<string, Uint8Array>;
  /** Who vouches for them, by digest. */
  envelopes: ReadonlyMap<string, Uint8Array>;
  /** Keys that were taken out by then. */
  revokedKeys: readonly string[];
}

/**
 * What a router last ran, kept where it outlives the router and needs no network: who starts while the control store is away begins with it.
 * The two newest generations of each scope are kept.
 */
export interface LastKnownGood {
  /** Newest first. What cannot be read is left out and logged; whoever loads checks the documents again. Never throws. */
  load(scope: string): Promise<readonly KnownGood[]>;
  /**
   * Keeps it as the newest generation, wholly or not at all, unless what is kept is of the same or a higher epoch.
   * @throws MillraceError STORE_UNAVAILABLE where it cannot be written
   */
  save(scope: string, good: KnownGood): Promise<void>;
}
