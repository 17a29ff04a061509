import { own } from '../own.ts';
import type { MetricGuardrail } from '../policy/document.ts';
import type { MetricReading } from './metric-reading.ts';
import { reasonOf, rounded, seconds } from './reason-text.ts';
import type { HoldReason } from './rollout-event.ts';
import type { RolloutState } from './rollout-state.ts';

/** Readings may be of any size: milliseconds, or a share. */
const DIGITS = 6;

/** What is known of one query of the guardrails. */
export interface MetricState {
  readonly reading: MetricReading;
  readonly readAtMs: number;
  /** Since when it has been out of its bounds, without a reading within them between; undefined where it is not. */
  readonly breachedSinceMs: number | undefined;
}

/** The states after a look. A query that was not read in it keeps its state. */
export function addReadings(
  { metrics, terms }: RolloutState,
  readings: Readonly<Record<string, MetricReading>>,
  atMs: number,
): RolloutState['metrics'] {
  const next: Record<string, MetricState> = {};
  for (const query of terms.queries) {
    const before = own(metrics, query.name);
    const reading = own(readings, query.name);
    if (reading === undefined) {
      if (before !== undefined) next[query.name] = before;
      continue;
    }
    next[query.name] = {
      reading,
      readAtMs: atMs,
      breachedSinceMs: breachedSince(query, reading, before, atMs),
    };
  }
  return next;
}

/** No answer does not say that it is well again: or a Prometheus that fails now and then would let no breach last. */
function breachedSince(
  query: MetricGuardrail,
  reading: MetricReading,
  before: MetricState | undefined,
  atMs: number,
): number | undefined {
  if ('failed' in reading) return before?.breachedSinceMs;
  return isBreached(query, reading) ? (before?.breachedSinceMs ?? atMs) : undefined;
}

/** Queries that hold the rollout. No answer is no pass. */
export function metricReasons(rollout: RolloutState): HoldReason[] {
  const breached = breaches(rollout).map(({ query, state }) => breachText(query, state));
  const silent = rollout.terms.queries.flatMap((query) => silenceText(rollout, query) ?? []);
  return [
    ...reasonOf('external-guardrail', breached, 'guardrails are broken'),
    ...reasonOf('external-no-data', silent, 'guardrails could not be read'),
  ];
}

/** Why the rollout must be rolled back, where the policy wants that of a broken guardrail. */
export function metricRollback(rollout: RolloutState): string | undefined {
  const broken = breaches(rollout).filter(({ query }) => query.breach === 'roll-back');
  if (broken.length === 0) return undefined;
  return `guardrails are broken: ${broken.map(({ query, state }) => breachText(query, state)).join('; ')}`;
}

/** What is still to be known of the queries before the stage may pass. */
export function missingMetrics({ terms, metrics, lastLookMs }: RolloutState): string[] {
  return terms.queries.flatMap((query) => {
    const state = own(metrics, query.name);
    if (state === undefined) return [`guardrail ${query.name} was not read yet`];
    if (state.breachedSinceMs === undefined || lastLookMs - state.breachedSinceMs >= query.forMs) return [];
    return [`not clear yet: ${breachText(query, state)}, which counts after ${seconds(query.forMs)} s`];
  });
}

function breaches({ terms, metrics, lastLookMs }: RolloutState) {
  return terms.queries.flatMap((query) => {
    const state = own(metrics, query.name);
    const sinceMs = state?.breachedSinceMs;
    if (state === undefined || sinceMs === undefined || lastLookMs - sinceMs < query.forMs) return [];
    // Nothing is broken by an answer that is not there.
    return 'failed' in state.reading ? [] : [{ query, state }];
  });
}

/** Of several series the worst counts. */
function isBreached(
  { min, max }: MetricGuardrail,
  reading: Exclude<MetricReading, { failed: string }>,
): boolean {
  return (min !== undefined && reading.lowest < min) || (max !== undefined && reading.highest > max);
}

function silenceText(
  { metrics, terms, lastLookMs }: RolloutState,
  { name }: MetricGuardrail,
): string | undefined {
  const state = own(metrics, name);
  if (state === undefined) return undefined;
  if ('failed' in state.reading) return `${name}: ${state.reading.failed}`;
  const silentMs = lastLookMs - state.readAtMs;
  return silentMs < terms.limits.silenceMsMax ? undefined : `${name}: no answer for ${seconds(silentMs)} s`;
}

function breachText({ name, min, max }: MetricGuardrail, { reading }: MetricState): string {
  if ('failed' in reading) return name;
  const { series, lowest, highest } = reading;
  const isLow = min !== undefined && lowest < min;
  const bound = isLow
    ? `${rounded(lowest, DIGITS)}, at least ${min} is wanted`
    : `${rounded(highest, DIGITS)}, at most ${max} is wanted`;
  return `${name} is ${bound}${series > 1 ? ` (the worst of ${series} series)` : ''}`;
}
