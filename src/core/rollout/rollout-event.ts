import type { PublishedPolicy } from '../control/published-policy.ts';
import type { Observation } from './observation.ts';
import type { RolloutTerms } from './rollout-terms.ts';

export const HOLD_CODES = [
  'person',
  'latency-apart',
  'exceptions',
  'routing-cost',
  'projected-utilisation',
  'leaf-not-hit',
  'diff-contradicted',
  'no-data',
  'statistics',
  'harm',
  'pool-queue',
  'pool-utilisation',
  'slo-burn',
  'router-refusal',
  'model-not-ready',
  'score-histogram',
  'score-mean',
  'score-heads',
  'external-guardrail',
  'external-no-data',
] as const;
export type HoldCode = (typeof HOLD_CODES)[number];

export interface HoldReason {
  readonly code: HoldCode;
  readonly text: string;
}

/** Who or what brought the event about; a look has no command, and `AUTOMATIC` as its actor. */
export interface RolloutCause {
  readonly commandId: string;
  readonly scope: string;
  readonly actor: string;
}

export const AUTOMATIC = 'rollout';

/** Times are the controller's log time: ms since the epoch, and never falling from one event to the next. */
export type RolloutEvent = RolloutCause &
  (
    | {
        readonly type: 'rollout-started';
        readonly candidate: PublishedPolicy;
        readonly terms: RolloutTerms;
        readonly salt: string;
        readonly atMs: number;
        readonly epoch: number;
      }
    /** What the last window showed; what follows from it stands in the events right after. */
    | { readonly type: 'rollout-looked'; readonly observation: Observation }
    | {
        readonly type: 'rollout-advanced';
        /** Index of the stage that begins. */
        readonly to: number | 'live';
        /** What spoke against it and a person passed over. */
        readonly overridden: readonly string[];
        readonly atMs: number;
        readonly epoch: number;
      }
    | { readonly type: 'rollout-held'; readonly reasons: readonly HoldReason[]; readonly atMs: number }
    | { readonly type: 'rollout-resumed'; readonly waivedLeaves: readonly string[]; readonly atMs: number }
    /** What was observed of the stage so far is worth nothing any more; what is decided from the new epoch on counts. */
    | {
        readonly type: 'stage-restarted';
        readonly fingerprint: string;
        readonly atMs: number;
        readonly epoch: number;
      }
    | {
        readonly type: 'rollout-rolled-back';
        readonly reason: string;
        readonly atMs: number;
        readonly epoch: number;
      }
    | {
        readonly type: 'rollout-aborted';
        readonly reason: string;
        readonly atMs: number;
        readonly epoch: number;
      }
  );

/** An event without its cause. */
export type RolloutHappening = DistributiveOmit<RolloutEvent, keyof RolloutCause>;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
