import { own } from '../own.ts';
import {
  addWindow,
  logEValue,
  logMeanExp,
  type RatioTest,
  startRatioTest,
} from '../rollout/sequential-test.ts';
import {
  type DomainObservation,
  METRICS,
  type Metric,
  type TuningObservation,
} from './tuning-observation.ts';
import type { DomainEvidence, TrailStep } from './tuning-state.ts';
import { RECOVERED, type TuningTerms, WORSE } from './tuning-terms.ts';

type Domains = TuningObservation['domains'];

/** A domain, and those that are compared with it. */
export interface Compared {
  readonly domain: string;
  readonly others: readonly string[];
}

/**
 * One more period of evidence that a domain degrades, against those that would take its traffic in the same period: what slows all of them is no
 * reason to move any. Undefined where this period shows nothing of the kind: the evidence begins anew.
 */
export function suspect(
  before: DomainEvidence | undefined,
  compared: Compared,
  domains: Domains,
  terms: TuningTerms,
): DomainEvidence | undefined {
  const counts = countsOf(compared, domains, terms, terms.witnessesMax);
  if (counts === undefined) return undefined;
  const limit = terms.degradedRatio * (1 - terms.quantile);
  const metrics = METRICS.filter((metric) => counts[metric].share >= limit);
  return metrics.length === 0 ? undefined : add(before, counts, metrics, WORSE);
}

/**
 * One more period of evidence that a domain has recovered in all that had shown the trouble: the share of slow requests is as usual, or at least nearer
 * to that than to the trouble (by ratio). Other requests come here since the step, and what is usual for these nobody knows. It is held against the
 * others, or against what is usual where they have fewer slow ones than that: in quiet times hardly anything is slow anywhere, and a ratio of next to
 * nothing would prove nothing for hours. A count that is fixed makes the test no less valid, since it varies less than one that is not.
 */
export function recover(
  before: DomainEvidence | undefined,
  compared: Compared & Pick<TrailStep, 'metrics' | 'slowShares'>,
  domains: Domains,
  terms: TuningTerms,
): DomainEvidence | undefined {
  const max = terms.recoveryWitnessesMax;
  const counts = countsOf(compared, domains, terms, { queue: max, kernel: max, endToEnd: max });
  if (counts === undefined) return undefined;
  const { metrics } = compared;
  if (metrics.some((metric) => counts[metric].share > recoveredLimit(compared, metric, terms)))
    return undefined;
  const atLeastUsual = (metric: Metric): Counts => {
    const { others } = counts[metric];
    const usual = Math.round((1 - terms.quantile) * others.requests);
    return { ...counts[metric], others: { ...others, slow: Math.max(others.slow, usual) } };
  };
  const held = {
    queue: atLeastUsual('queue'),
    kernel: atLeastUsual('kernel'),
    endToEnd: atLeastUsual('endToEnd'),
  };
  return add(before, held, metrics, RECOVERED);
}

/** Whether the trouble that a step was about still shows; where hardly a request is left nothing does. */
export function isStillSlow(step: TrailStep, domains: Domains, terms: TuningTerms): boolean {
  const domain = own(domains, step.domain);
  return step.metrics.some(
    (metric) =>
      (domain?.latency[metric].count ?? 0) >= terms.requestsMin &&
      slowShare(domain, metric) > recoveredLimit(step, metric, terms),
  );
}

function recoveredLimit(
  { slowShares }: Pick<TrailStep, 'slowShares'>,
  metric: Metric,
  terms: TuningTerms,
): number {
  const usual = 1 - terms.quantile;
  return Math.max(terms.recoveredRatio * usual, Math.sqrt(usual * slowShares[metric]));
}

/** log E that the domain degrades: the mean over the metrics, each of which may show it. */
export function logEOfSuspicion({ tests }: DomainEvidence): number {
  return logMeanExp(METRICS.map((metric) => logEValue(tests[metric])));
}

/** log E that it has recovered: the least sure of the metrics that had shown the trouble. */
export function logEOfRecovery({ tests, metrics }: DomainEvidence): number {
  return Math.min(...metrics.map((metric) => logEValue(tests[metric])));
}

interface Counts {
  /** Of the domain's requests, how many were slow; 0 … 1. */
  readonly share: number;
  readonly own: Witnesses;
  readonly others: Witnesses;
}

interface Witnesses {
  readonly requests: number;
  readonly slow: number;
}

/** Undefined where a side has too few requests to say anything. */
function countsOf(
  { domain, others }: Compared,
  domains: Domains,
  terms: TuningTerms,
  witnessesMax: TuningTerms['witnessesMax'],
): Readonly<Record<Metric, Counts>> | undefined {
  const observed = own(domains, domain);
  const rest = others.flatMap((name) => own(domains, name) ?? []);
  if (observed === undefined) return undefined;
  const isEnough = (some: readonly DomainObservation[]): boolean =>
    METRICS.every((metric) => total(some, metric, 'count') >= terms.requestsMin);
  if (!isEnough([observed]) || !isEnough(rest)) return undefined;
  const of = (metric: Metric): Counts => ({
    share: slowShare(observed, metric),
    own: witnesses([observed], metric, witnessesMax[metric]),
    others: witnesses(rest, metric, witnessesMax[metric]),
  });
  return { queue: of('queue'), kernel: of('kernel'), endToEnd: of('endToEnd') };
}

/** Of a domain's requests, how many took longer than is usual; 0 … 1. */
export function slowShare(domain: DomainObservation | undefined, metric: Metric): number {
  const { count, over } = domain?.latency[metric] ?? { count: 0, over: 0 };
  return count === 0 ? 0 : over / count;
}

function total(domains: readonly DomainObservation[], metric: Metric, key: 'count' | 'over'): number {
  return domains.reduce((sum, { latency }) => sum + latency[metric][key], 0);
}

function witnesses(domains: readonly DomainObservation[], metric: Metric, max: number): Witnesses {
  const [count, slow] = [total(domains, metric, 'count'), total(domains, metric, 'over')];
  const requests = Math.min(count, max);
  return { requests, slow: Math.round((slow * requests) / count) };
}

function add(
  before: DomainEvidence | undefined,
  counts: Readonly<Record<Metric, Counts>>,
  metrics: readonly Metric[],
  family: { readonly null: number; readonly alternatives: readonly number[] },
): DomainEvidence {
  const next = (metric: Metric): RatioTest => {
    const { own, others } = counts[metric];
    const exposure = own.requests / (own.requests + others.requests);
    const test = before?.tests[metric] ?? startRatioTest(family.null, family.alternatives);
    return addWindow(test, { exposure, canaryEvents: own.slow, controlEvents: others.slow });
  };
  const tests = { queue: next('queue'), kernel: next('kernel'), endToEnd: next('endToEnd') };
  return { periods: (before?.periods ?? 0) + 1, tests, metrics };
}
