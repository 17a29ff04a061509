import { MillraceError } from '../errors.ts';
import {
  addToMetric,
  eventsOf,
  logHarm,
  logSafe,
  METRICS,
  type Metric,
  type MetricEvidence,
  startMetric,
} from './metric-evidence.ts';

import type { ArmObservation, Observation } from './observation.ts';
import { rounded, seconds } from './reason-text.ts';
import { DEFAULT_LIMITS } from './rollout-terms.ts';
import {
  addAssignments,
  isSampleRatioOff,
  SAMPLE_RATIO_SLACK,
  type SampleRatio,
  startSampleRatio,
} from './sample-ratio.ts';
import { checkCount, HARM, logMeanExp, SAFE } from './sequential-test.ts';

const LOG_MAX = 700;

export interface EvidenceStage {
  readonly percent: number;
  readonly unit?: 'bucketKey' | 'requestId';
  /** See `RolloutLimits`. */
  readonly toleratedRate?: number;
  /** An arm without a request for so long holds the rollout. */
  readonly silenceMsMax?: number;
}

/** All tests of one stage, on this stage's data alone. Immutable and JSON-able. */
export interface StageEvidence {
  readonly percent: number;
  readonly silenceMsMax: number;
  readonly windows: number;
  /** How long each arm has been without a request. */
  readonly canarySilentMs: number;
  readonly stableSilentMs: number;
  readonly sampleRatio: SampleRatio;
  readonly metrics: readonly MetricEvidence[];
}

export type Verdict =
  | { readonly kind: 'roll-back'; readonly reason: string }
  | { readonly kind: 'hold'; readonly reason: string }
  | { readonly kind: 'promotable' }
  | { readonly kind: 'inconclusive'; readonly reason: string };

/** @throws MillraceError INVALID_POLICY for a percentage outside 0 … 100, or a tolerated rate outside (0, 1). */
export function startEvidence(stage: EvidenceStage): StageEvidence {
  const { percent, unit = 'bucketKey' } = stage;
  const { toleratedRate, silenceMsMax } = { ...DEFAULT_LIMITS, ...stage };
  if (!(percent >= 0 && percent <= 100))
    throw new MillraceError('INVALID_POLICY', 'A stage has no such percentage', {
      value: percent,
      allowed: '0 … 100',
    });
  if (!(toleratedRate > 0 && toleratedRate < 1))
    throw new MillraceError('INVALID_POLICY', 'No such rate of events can be tolerated', {
      value: toleratedRate,
      allowed: 'more than 0, less than 1',
    });
  return {
    percent,
    silenceMsMax,
    windows: 0,
    canarySilentMs: 0,
    stableSilentMs: 0,
    sampleRatio: startSampleRatio(percent, SAMPLE_RATIO_SLACK[unit]),
    metrics: METRICS.map((metric) => startMetric(metric, toleratedRate)),
  };
}

/** @throws MillraceError MALFORMED, see `checkObservation`. */
export function addObservation(evidence: StageEvidence, observation: Observation): StageEvidence {
  checkObservation(observation);
  const { stable, canary, windowMs } = observation;
  return {
    percent: evidence.percent,
    silenceMsMax: evidence.silenceMsMax,
    windows: evidence.windows + 1,
    canarySilentMs: canary.requests > 0 ? 0 : evidence.canarySilentMs + windowMs,
    stableSilentMs: stable.requests > 0 ? 0 : evidence.stableSilentMs + windowMs,
    sampleRatio: addAssignments(evidence.sampleRatio, canary.requests, stable.requests),
    metrics: evidence.metrics.map((metric) => addToMetric(metric, observation)),
  };
}

/**
 * What the statistics alone say; dwell times and guardrails are not theirs.
 * - roll back: the mean over the metrics of E(ratio > 1.1) is 100 or more. A mean of e-values is one, whatever the metrics have to do with each
 *   other, so that a policy without a difference is rolled back at most once in 100 stages.
 * - promotable: E(ratio < 1.5) is 20 or more for *every* metric. The null is "at least one metric is 1.5 × worse", a union, and a union is
 *   refuted only where each of its parts is (Berger 1982). A mean would let five good metrics carry a bad one through.
 */
export function judge(evidence: StageEvidence): Verdict {
  const harms = evidence.metrics.map(logHarm);
  if (logMeanExp(harms) >= Math.log(HARM.threshold))
    return { kind: 'roll-back', reason: describeHarm(evidence) };
  if (isSampleRatioOff(evidence.sampleRatio))
    return { kind: 'hold', reason: describeSampleRatio(evidence.sampleRatio) };
  const silent = silence(evidence);
  if (silent !== undefined) return silent;
  const unsafe = evidence.metrics.flatMap((metric) => {
    const safe = logSafe(metric);
    return safe < Math.log(SAFE.threshold) ? [describeUnsafe(metric, safe)] : [];
  });
  if (unsafe.length > 0)
    return { kind: 'inconclusive', reason: `not shown to be safe yet: ${unsafe.join(', ')}` };
  return { kind: 'promotable' };
}

export interface EvidenceLine {
  readonly metric: Metric;
  /** For "more than 1.1 × the control": 600 of one metric alone rolls back. */
  readonly harmE: number;
  /** For "less than 1.5 × the control, or rarer than tolerated": 20 of every metric is needed to go on. */
  readonly safeE: number;
  readonly canaryEvents: number;
  readonly controlEvents: number;
}

/** One line per metric, for `rollout status`. E-values are cut at e^700, so that they survive JSON. */
export function describeEvidence(evidence: StageEvidence): EvidenceLine[] {
  return evidence.metrics.map((metric) => ({
    metric: metric.metric,
    harmE: Math.exp(Math.min(logHarm(metric), LOG_MAX)),
    safeE: Math.exp(Math.min(logSafe(metric), LOG_MAX)),
    canaryEvents: metric.canaryEvents,
    controlEvents: metric.controlEvents,
  }));
}

/** @throws MillraceError MALFORMED for a count that is no count, or for more events than requests. */
export function checkObservation(observation: Observation): void {
  const { windowMs, stable, canary } = observation;
  if (!(windowMs > 0 && windowMs < Number.POSITIVE_INFINITY))
    throw new MillraceError('MALFORMED', 'A window has no length', {
      value: windowMs,
      allowed: 'milliseconds > 0',
    });
  checkArm('stable', stable);
  checkArm('canary', canary);
}

function checkArm(name: string, arm: ArmObservation): void {
  checkCount(`${name}.requests`, arm.requests);
  for (const metric of METRICS) {
    const events = eventsOf(arm, metric);
    checkCount(`${name}: ${metric}`, events);
    if (events > arm.requests)
      throw new MillraceError('MALFORMED', `${name}: more ${metric} than requests`, {
        value: events,
        allowed: `0 … ${arm.requests}`,
      });
  }
}

/** No data is a hold, never a pass. A single empty window may be chance where there is little traffic: nothing is promoted on it. */
function silence(evidence: StageEvidence): Verdict | undefined {
  const { percent, windows, canarySilentMs, stableSilentMs, silenceMsMax } = evidence;
  const canaryMs = percent > 0 ? canarySilentMs : 0;
  const stableMs = percent < 100 ? stableSilentMs : 0;
  const silentMs = Math.max(canaryMs, stableMs);
  if (windows === 0) return { kind: 'inconclusive', reason: 'no window was observed yet' };
  if (silentMs === 0) return undefined;
  const what =
    canaryMs > 0 && stableMs > 0
      ? 'no request in either arm'
      : canaryMs > 0
        ? 'no canary request'
        : 'no control request';
  const reason = `${what} for ${seconds(silentMs)} s`;
  return { kind: silentMs >= silenceMsMax ? 'hold' : 'inconclusive', reason };
}

function describeHarm({ metrics, sampleRatio }: StageEvidence): string {
  const worst = metrics.reduce((a, b) => (logHarm(b) > logHarm(a) ? b : a));
  const e = Math.exp(Math.min(logHarm(worst), LOG_MAX)).toPrecision(3);
  return `${worst.metric}: ${shareOf(worst.canaryEvents, sampleRatio.canary)} of the canary's requests against ${shareOf(worst.controlEvents, sampleRatio.stable)} of the control's (E = ${e})`;
}

function describeUnsafe(metric: MetricEvidence, safe: number): string {
  const e = Math.exp(safe).toPrecision(2);
  return `${metric.metric} (${metric.canaryEvents} against ${metric.controlEvents}, E = ${e} of ${SAFE.threshold})`;
}

function describeSampleRatio({ share, canary, stable }: SampleRatio): string {
  return `sample ratio: the canary got ${shareOf(canary, canary + stable)} of the requests, not ${percentOf(share)}`;
}

function shareOf(events: number, requests: number): string {
  return requests === 0 ? `${events} of 0` : `${percentOf(events / requests)} (${events} of ${requests})`;
}

function percentOf(share: number): string {
  return `${rounded(share * 100, 3)} %`;
}
