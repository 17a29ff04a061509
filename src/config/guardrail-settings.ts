import * as v from 'valibot';
import { closedObject } from '../core/json-values.ts';
import { DEFAULT_LIMITS as DEFAULTS, type RolloutLimits } from '../core/rollout/rollout-terms.ts';

/** Limits of rollouts that are a setting of their own elsewhere: `controller.shadowRequestsMin`. */
type Elsewhere = 'shadowRequestsMin';

const count = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000_000));
const share = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const factor = v.pipe(v.number(), v.minValue(1), v.maxValue(1_000));
const shift = v.pipe(v.number(), v.minValue(0), v.maxValue(1_000));
const durationMs = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(30 * 24 * 3_600_000));

/** What holds a rollout, by the names of `RolloutLimits`; a rollout keeps those that it was started with. */
export const guardrailSettings = closedObject({
  toleratedRate: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.000_001), v.maxValue(0.1)), DEFAULTS.toleratedRate),
    v.description(
      'Errors, dead letters, deadline misses and slow requests rarer than this pass without comparison, while nothing speaks for harm. Half of the error budget.',
    ),
  ),
  latencyApartMin: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.001), v.maxValue(100)), DEFAULTS.latencyApartMin),
    v.description(
      "Shadow: predicted latencies further apart than this share of the live policy's count as apart. Routers read it.",
    ),
  ),
  latencyApartShareMax: v.pipe(
    v.optional(share, DEFAULTS.latencyApartShareMax),
    v.description(
      'Shadow: share of the requests outside the declared diff whose predicted latency may be apart.',
    ),
  ),
  costUsP99Max: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(1), v.maxValue(1_000_000)), DEFAULTS.costUsP99Max),
    v.description('Shadow: what a decision of the candidate may cost, p99, in microseconds.'),
  ),
  projectedUtilisationMax: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.01), v.maxValue(1_000)), DEFAULTS.projectedUtilisationMax),
    v.description('Shadow: utilisation that each pool may have with all traffic on the candidate.'),
  ),
  leafHitsMin: v.pipe(
    v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000_000)),
      DEFAULTS.leafHitsMin,
    ),
    v.description('Shadow: fewest requests that each leaf of the candidate must get, unless it is waived.'),
  ),
  shareRequestsMin: v.pipe(
    v.optional(count, DEFAULTS.shareRequestsMin),
    v.description(
      'Shadow: shares are not judged on fewer requests; never more than `controller.shadowRequestsMin`.',
    ),
  ),
  queueFactorMax: v.pipe(
    v.optional(factor, DEFAULTS.queueFactorMax),
    v.description("A pool's p99 of queueing may rise to so many times what it was when the stage began."),
  ),
  queueMsFloor: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(3_600_000)), DEFAULTS.queueMsFloor),
    v.description('Up to so much queueing is no reason to hold, however little there was.'),
  ),
  utilisationFactorMax: v.pipe(
    v.optional(factor, DEFAULTS.utilisationFactorMax),
    v.description("A pool's utilisation may rise to so many times what it was when the stage began."),
  ),
  utilisationFloor: v.pipe(
    v.optional(share, DEFAULTS.utilisationFloor),
    v.description('Up to this utilisation is no reason to hold, however little there was.'),
  ),
  breachLooks: v.pipe(
    v.optional(v.pipe(count, v.maxValue(1_000)), DEFAULTS.breachLooks),
    v.description('A pool must be over its limit in so many looks one after another.'),
  ),
  successObjective: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.5), v.maxValue(0.999_999)), DEFAULTS.successObjective),
    v.description(
      'Objective for requests without error, dead letter or deadline miss; 0.999 leaves a budget of 0.1 %.',
    ),
  ),
  burnRateMax: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.1), v.maxValue(10_000)), DEFAULTS.burnRateMax),
    v.description('How many times its error budget all traffic, of either arm, may burn.'),
  ),
  burnRequestsMin: v.pipe(
    v.optional(count, DEFAULTS.burnRequestsMin),
    v.description('The burn rate is taken over at least so many requests.'),
  ),
  scorePsiMax: v.pipe(
    v.optional(shift, DEFAULTS.scorePsiMax ?? 0),
    v.description(
      "Population stability index that a head's scores may have between the arms; a policy can set its own. 1000 is no limit.",
    ),
  ),
  scoreMeanShiftMax: v.pipe(
    v.optional(shift, DEFAULTS.scoreMeanShiftMax ?? 0),
    v.description(
      "How many standard deviations of the control a head's mean may move; a policy can set its own. 1000 is no limit.",
    ),
  ),
  silenceMsMax: v.pipe(
    v.optional(durationMs, DEFAULTS.silenceMsMax),
    v.description('So long may an arm, a shadow or a query of the guardrails give nothing.'),
  ),
  holdMsMax: v.pipe(
    v.optional(durationMs, DEFAULTS.holdMsMax),
    v.description('A hold that lasts longer ends in a rollback.'),
  ),
}) satisfies v.GenericSchema<unknown, Omit<RolloutLimits, Elsewhere>>;
