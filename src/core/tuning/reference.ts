import { type DomainObservation, METRICS, type Metric } from './tuning-observation.ts';
import type { Reference, References } from './tuning-state.ts';
import type { TuningTerms } from './tuning-terms.ts';

/** The mean of so many periods, of which the old ones fade: a daily rhythm is followed within hours, a sudden change is not. */
const MEMORY_PERIODS = 40;
/** A queue is short in good times. Twice nothing is still nothing: its limit is at least this part of the whole way's median. */
const QUEUE_SHARE = 0.25;
/** Where all requests take the same time, a hundredth more would make all of them slow: a limit is at least this many medians. */
const HEADROOM = 1.15;

/** The references of a domain after one more good period; too few requests teach nothing. */
export function learn(
  known: References | undefined,
  observed: DomainObservation,
  terms: TuningTerms,
): References | undefined {
  const { latency } = observed;
  if (METRICS.some((metric) => latency[metric].count < terms.requestsMin)) return known;
  const next = (metric: Metric): Reference => {
    const { p50Ms, p90Ms } = latency[metric];
    const floorMs = metric === 'queue' ? QUEUE_SHARE * latency.endToEnd.p50Ms : HEADROOM * p50Ms;
    const limitMs = Math.max(p90Ms, floorMs);
    return follow(known?.[metric], { p50Ms, limitMs });
  };
  return { queue: next('queue'), kernel: next('kernel'), endToEnd: next('endToEnd') };
}

function follow(known: Reference | undefined, { p50Ms, limitMs }: Omit<Reference, 'learned'>): Reference {
  if (known === undefined) return { learned: 1, p50Ms, limitMs };
  const learned = Math.min(known.learned + 1, MEMORY_PERIODS);
  const weight = 1 / learned;
  return {
    learned,
    p50Ms: known.p50Ms + weight * (p50Ms - known.p50Ms),
    limitMs: known.limitMs + weight * (limitMs - known.limitMs),
  };
}

export const SLOWDOWN_METRICS = ['kernel', 'endToEnd'] as const satisfies readonly Metric[];
export type SlowdownMetric = (typeof SLOWDOWN_METRICS)[number];

/** How many times longer than usual it takes, by median and limit alike; 1 where nothing is known. */
export function slowdownOf(
  references: References | undefined,
  observed: DomainObservation | undefined,
  metric: SlowdownMetric,
): number {
  if (references === undefined || observed === undefined) return 1;
  const { p50Ms, limitMs } = references[metric];
  const now = observed.latency[metric];
  return now.count === 0 || p50Ms <= 0 || limitMs <= 0 ? 1 : (now.p50Ms / p50Ms + now.p90Ms / limitMs) / 2;
}
