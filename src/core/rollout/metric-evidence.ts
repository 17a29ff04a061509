import type { ArmObservation, Observation } from './observation.ts';
import { addRequests, logEOfRate, type RateTest, startRateTest } from './rate-test.ts';
import {
  addWindow,
  HARM,
  logEValue,
  logMeanExp,
  type RatioTest,
  SAFE,
  startRatioTest,
} from './sequential-test.ts';

/** What may get worse: how a request ends, and how many take longer than the control's median, 95th and 99th percentile did. */
export const METRICS = [
  'errors',
  'dead letters',
  'deadline misses',
  'over p50',
  'over p95',
  'over p99',
] as const;

const LOG_EQUAL_MAX = Math.log(4);

export type Metric = (typeof METRICS)[number];

/** Everything about one metric of one stage. JSON-able. */
export interface MetricEvidence {
  readonly metric: Metric;
  readonly harm: RatioTest;
  readonly safe: RatioTest;
  readonly rate: RateTest;
  readonly canaryEvents: number;
  readonly controlEvents: number;
}

export function startMetric(metric: Metric, toleratedRate: number): MetricEvidence {
  return {
    metric,
    harm: startRatioTest(HARM.null, HARM.alternatives),
    safe: startRatioTest(SAFE.null, SAFE.alternatives),
    rate: startRateTest(toleratedRate),
    canaryEvents: 0,
    controlEvents: 0,
  };
}

export function addToMetric(evidence: MetricEvidence, { stable, canary }: Observation): MetricEvidence {
  const { metric } = evidence;
  const canaryEvents = eventsOf(canary, metric);
  const controlEvents = eventsOf(stable, metric);
  const requests = canary.requests + stable.requests;
  const window = { exposure: requests === 0 ? 0 : canary.requests / requests, canaryEvents, controlEvents };
  return {
    metric,
    harm: addWindow(evidence.harm, window),
    safe: addWindow(evidence.safe, window),
    rate: isMeasured(metric, stable)
      ? addRequests(evidence.rate, canary.requests, canaryEvents)
      : evidence.rate,
    canaryEvents: evidence.canaryEvents + canaryEvents,
    controlEvents: evidence.controlEvents + controlEvents,
  };
}

/** log E for "the canary's rate is more than 1.1 × the control's". */
export function logHarm(evidence: MetricEvidence): number {
  return logEValue(evidence.harm);
}

/**
 * log E against "the canary's rate is at least 1.5 × the control's *and* at least the tolerated rate": one of the two must be refuted.
 * The mean of both e-processes is one for their conjunction. The second ends the wait where both arms have next to no events; it counts
 * only while what events there are look like those of equal arms. Leaving it out only lowers E.
 */
export function logSafe(evidence: MetricEvidence): number {
  const rare = looksEqual(evidence) ? logEOfRate(evidence.rate) : Number.NEGATIVE_INFINITY;
  return logMeanExp([logEValue(evidence.safe), rare]);
}

/**
 * Whether the likelihood ratio of "equal" to "1.5 times worse" is what equal arms have on average after so many events, or 4: a policy that
 * is 1.5 times worse ever gets to 4 in one stage of four at most (Ville), and with few events hardly oftener to less.
 */
function looksEqual({ safe, canaryEvents, controlEvents }: MetricEvidence): boolean {
  const events = canaryEvents + controlEvents;
  const logEqual = safe.logE[safe.alternatives.indexOf(1)] ?? 0;
  if (events === 0) return true;
  // Per event the log of nullRate = 1 + (ρ_0 − 1)·w, from which the exposure follows as the events saw it.
  const logNullRate = (logEqual + canaryEvents * Math.log(safe.null)) / events;
  const exposure = Math.expm1(logNullRate) / (safe.null - 1);
  const onAverage = events * (logNullRate - exposure * Math.log(safe.null));
  return logEqual >= Math.min(LOG_EQUAL_MAX, onAverage);
}

export function eventsOf(arm: ArmObservation, metric: Metric): number {
  switch (metric) {
    case 'errors':
      return arm.errors;
    case 'dead letters':
      return arm.deadLettered;
    case 'deadline misses':
      return arm.deadlineMissed;
    case 'over p50':
      return arm.over[0];
    case 'over p95':
      return arm.over[1];
    case 'over p99':
      return arm.over[2];
    default:
      return metric satisfies never;
  }
}

/** Nothing is over a τ that is not frozen yet, and that is no sign of speed. Once it is, half of the control's requests are over p50. */
function isMeasured(metric: Metric, stable: ArmObservation): boolean {
  return !metric.startsWith('over ') || stable.over[0] > 0;
}
