import type { HoldCode } from '../../core/rollout/rollout-event.ts';

/** What a candidate would have decided of the requests of one run, while the live policy acted. Plain JSON. */
export interface ShadowReport {
  readonly candidate: { readonly name: string; readonly version: number; readonly digest: string };
  readonly requests: number;
  /** Requests on which deciding by the candidate threw. */
  readonly exceptions: number;
  readonly all: ShadowShares;
  /** The windows with the most requests, a tenth of all, at least one. */
  readonly busiest: ShadowShares;
  /** Leaves of the live policy, the one with the most requests first. */
  readonly leaves: readonly ShadowLeaf[];
  /** Leaves of the candidate, in the order of its document. */
  readonly candidateLeaves: readonly CandidateLeaf[];
  readonly pools: readonly ShadowPool[];
  readonly rollout: ShadowVerdict;
}

export interface ShadowShares {
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Share of the requests that get another target, 0 … 1. */
  readonly changed: number;
  /** Share of the requests whose predicted latency is apart by more than the rollout's limit. */
  readonly latencyApart: number;
}

export interface ShadowLeaf {
  readonly leaf: string;
  readonly all: ShadowShares;
  readonly busiest: ShadowShares;
}

export interface CandidateLeaf {
  readonly leaf: string;
  readonly requests: number;
  readonly share: number;
  /** It has fewer requests than a rollout asks of each leaf. */
  readonly isSeldom: boolean;
}

export interface ShadowPool {
  readonly pool: string;
  /** Utilisation if the candidate decided everything, 0 …: over 1 is more than the pool can do. Null where no window had a worker for it. */
  readonly projected: number | null;
  readonly projectedBusiest: number | null;
  /** Of the windows that had work for the pool, those without a live worker for it. */
  readonly windowsWithoutWorker: number;
}

/** What the shadow rules of a rollout say of the run. */
export interface ShadowVerdict {
  readonly looks: number;
  /** Each reason that any look had, as it was told last. */
  readonly holds: readonly ShadowHold[];
  /** What the shadow of a rollout asks for beyond this run. */
  readonly missing: readonly string[];
}

export interface ShadowHold {
  readonly code: HoldCode;
  readonly text: string;
  /** Since the traffic began, ms. */
  readonly firstMs: number;
  /** Looks that had it. */
  readonly looks: number;
}
