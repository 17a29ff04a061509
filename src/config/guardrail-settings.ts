import { z } from 'zod';
import { DEFAULT_LIMITS as DEFAULTS, type RolloutLimits } from '../core/rollout/rollout-terms.ts';

/** Limits of rollouts that are a setting of their own elsewhere: `controller.shadowRequestsMin`. */
type Elsewhere = 'shadowRequestsMin';

const count = z.number().int().min(1).max(1_000_000_000);
const share = z.number().min(0).max(1);
const factor = z.number().min(1).max(1_000);
const shift = z.number().min(0).max(1_000);
const durationMs = z
  .number()
  .int()
  .min(1)
  .max(30 * 24 * 3_600_000);

/** What holds a rollout, by the names of `RolloutLimits`; a rollout keeps those that it was started with. */
export const guardrailSettings = z.strictObject({
  toleratedRate: z
    .number()
    .min(0.000_001)
    .max(0.1)
    .default(DEFAULTS.toleratedRate)
    .describe(
      'Errors, dead letters, deadline misses and slow requests rarer than this pass without comparison, while nothing speaks for harm. Half of the error budget.',
    ),
  latencyApartMin: z
    .number()
    .min(0.001)
    .max(100)
    .default(DEFAULTS.latencyApartMin)
    .describe(
      "Shadow: predicted latencies further apart than this share of the live policy's count as apart. Routers read it.",
    ),
  latencyApartShareMax: share
    .default(DEFAULTS.latencyApartShareMax)
    .describe(
      'Shadow: share of the requests outside the declared diff whose predicted latency may be apart.',
    ),
  costUsP99Max: z
    .number()
    .min(1)
    .max(1_000_000)
    .default(DEFAULTS.costUsP99Max)
    .describe('Shadow: what a decision of the candidate may cost, p99, in microseconds.'),
  projectedUtilisationMax: z
    .number()
    .min(0.01)
    .max(1_000)
    .default(DEFAULTS.projectedUtilisationMax)
    .describe('Shadow: utilisation that each pool may have with all traffic on the candidate.'),
  leafHitsMin: z
    .number()
    .int()
    .min(0)
    .max(1_000_000_000)
    .default(DEFAULTS.leafHitsMin)
    .describe('Shadow: fewest requests that each leaf of the candidate must get, unless it is waived.'),
  shareRequestsMin: count
    .default(DEFAULTS.shareRequestsMin)
    .describe(
      'Shadow: shares are not judged on fewer requests; never more than `controller.shadowRequestsMin`.',
    ),
  queueFactorMax: factor
    .default(DEFAULTS.queueFactorMax)
    .describe("A pool's p99 of queueing may rise to so many times what it was when the stage began."),
  queueMsFloor: z
    .number()
    .min(0)
    .max(3_600_000)
    .default(DEFAULTS.queueMsFloor)
    .describe('Up to so much queueing is no reason to hold, however little there was.'),
  utilisationFactorMax: factor
    .default(DEFAULTS.utilisationFactorMax)
    .describe("A pool's utilisation may rise to so many times what it was when the stage began."),
  utilisationFloor: share
    .default(DEFAULTS.utilisationFloor)
    .describe('Up to this utilisation is no reason to hold, however little there was.'),
  breachLooks: count
    .max(1_000)
    .default(DEFAULTS.breachLooks)
    .describe('A pool must be over its limit in so many looks one after another.'),
  successObjective: z
    .number()
    .min(0.5)
    .max(0.999_999)
    .default(DEFAULTS.successObjective)
    .describe(
      'Objective for requests without error, dead letter or deadline miss; 0.999 leaves a budget of 0.1 %.',
    ),
  burnRateMax: z
    .number()
    .min(0.1)
    .max(10_000)
    .default(DEFAULTS.burnRateMax)
    .describe('How many times its error budget all traffic, of either arm, may burn.'),
  burnRequestsMin: count
    .default(DEFAULTS.burnRequestsMin)
    .describe('The burn rate is taken over at least so many requests.'),
  scorePsiMax: shift
    .default(DEFAULTS.scorePsiMax ?? 0)
    .describe(
      "Population stability index that a head's scores may have between the arms; a policy can set its own. 1000 is no limit.",
    ),
  scoreMeanShiftMax: shift
    .default(DEFAULTS.scoreMeanShiftMax ?? 0)
    .describe(
      "How many standard deviations of the control a head's mean may move; a policy can set its own. 1000 is no limit.",
    ),
  silenceMsMax: durationMs
    .default(DEFAULTS.silenceMsMax)
    .describe('So long may an arm, a shadow or a query of the guardrails give nothing.'),
  holdMsMax: durationMs.default(DEFAULTS.holdMsMax).describe('A hold that lasts longer ends in a rollback.'),
}) satisfies z.ZodType<Omit<RolloutLimits, Elsewhere>>;
