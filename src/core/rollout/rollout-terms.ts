import type { Expectation, MetricGuardrail, RolloutPlan } from '../policy/document.ts';

/** One stretch of the way to live. `percent` is the candidate's share of the units while it acts: 0 in shadow. */
export interface RolloutStage {
  readonly name: 'shadow' | 'canary' | 'ramp';
  readonly percent: number;
  /** Least time that must have been observed in the stage, holds left out. */
  readonly dwellMs: number;
}

/** What puts a rollout on hold, whatever the statistics say. */
export interface RolloutLimits {
  /** Fewest requests that both policies decided before the shadow ends. */
  readonly shadowRequestsMin: number;
  /**
   * Events of fewer requests than this need no comparison with the control, as long as they do not speak for harm. Without it, a metric on which
   * nothing ever happens would never pass.
   */
  readonly toleratedRate: number;
  /** Shares are not judged on fewer requests than this. */
  readonly shareRequestsMin: number;
  /** Predicted latencies further apart than this share of the live policy's count as apart: routers count them. */
  readonly latencyApartMin: number;
  /** Most of the shadow's requests whose predicted latency may be apart, outside the declared diff. */
  readonly latencyApartShareMax: number;
  /** What a decision of the candidate may cost, p99. */
  readonly costUsP99Max: number;
  /** Of a pool, if the candidate decided everything. */
  readonly projectedUtilisationMax: number;
  /** Fewest requests in shadow that every leaf of the candidate must have had, unless it is waived. */
  readonly leafHitsMin: number;
  /** A pool's p99 of queueing may rise to so many times its value at the start of the stage, and to `queueMsFloor` in any case. */
  readonly queueFactorMax: number;
  readonly queueMsFloor: number;
  /** The same for its utilisation, 0 … 1. */
  readonly utilisationFactorMax: number;
  readonly utilisationFloor: number;
  /** A pool must be over its limit in so many looks one after another: a single window is noise. */
  readonly breachLooks: number;
  /** The objective for requests without error, dead letter or deadline miss, and how many times its error budget may burn. */
  readonly successObjective: number;
  readonly burnRateMax: number;
  /** The burn rate is taken over blocks of whole windows with at least so many requests. */
  readonly burnRequestsMin: number;
  /** How far a head's scores may move between the arms: population stability index, and the mean in standard deviations. Undefined: however far. */
  readonly scorePsiMax: number | undefined;
  readonly scoreMeanShiftMax: number | undefined;
  /** So long may an arm have no request, a shadow no decision, a query of the guardrails no answer. */
  readonly silenceMsMax: number;
  /** A hold that lasts longer ends in a rollback. */
  readonly holdMsMax: number;
}

/** What a rollout was started with. All of it is in the log, so that the log alone explains every decision. */
export interface RolloutTerms {
  /** The first is the shadow; shares rise from one to the next. */
  readonly stages: readonly RolloutStage[];
  readonly unit: RolloutPlan['unit'];
  /** Routers go back to the stable policy when the controller was silent for so long. */
  readonly leaseMs: number;
  /** All leaves of the candidate. */
  readonly leaves: readonly string[];
  /** Leaves that may stay below `leafHitsMin`. */
  readonly waivedLeaves: readonly string[];
  readonly expect: Expectation | undefined;
  readonly limits: RolloutLimits;
  /** The policy's own guardrails in a store of metrics. */
  readonly queries: readonly MetricGuardrail[];
  /** Otherwise a stage that passed waits for a person's PROMOTE. */
  readonly autoPromote: boolean;
  /** Otherwise a proven harm is a hold, and ends in a rollback only when that has lasted too long. */
  readonly autoRollback: boolean;
}

export const DEFAULT_LIMITS: RolloutLimits = {
  shadowRequestsMin: 10_000,
  // Half of the error budget of a 99.9 % objective.
  toleratedRate: 0.0005,
  shareRequestsMin: 1_000,
  latencyApartMin: 0.05,
  latencyApartShareMax: 0.01,
  costUsP99Max: 100,
  projectedUtilisationMax: 0.8,
  leafHitsMin: 30,
  queueFactorMax: 2,
  queueMsFloor: 10,
  utilisationFactorMax: 1.5,
  utilisationFloor: 0.8,
  breachLooks: 3,
  // The usual pair for a fast burn (Google SRE workbook, chapter 5): 14.4 times the budget of 99.9 %, that is 1.44 % of the requests.
  successObjective: 0.999,
  burnRateMax: 14.4,
  burnRequestsMin: 1_000,
  // Siddiqi, Credit Risk Scorecards, 2006: above 0.25 a population has moved for good.
  scorePsiMax: 0.25,
  scoreMeanShiftMax: 0.25,
  silenceMsMax: 60_000,
  holdMsMax: 2 * 60 * 60_000,
};

/** The stages of a policy's plan, in their order. */
export function stagesOf(plan: RolloutPlan): RolloutStage[] {
  return [
    { name: 'shadow', percent: 0, dwellMs: plan.shadowMs },
    { name: 'canary', percent: plan.canary.percent, dwellMs: plan.canary.dwellMs },
    ...plan.rampPercents.map(
      (percent): RolloutStage => ({ name: 'ramp', percent, dwellMs: plan.rampDwellMs }),
    ),
  ];
}
