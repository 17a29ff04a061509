import { own } from '../own.ts';
import { SLOWDOWN_METRICS, type SlowdownMetric, slowdownOf } from './reference.ts';
import { shownDomain, type TuningObservation } from './tuning-observation.ts';
import type { References, Trial } from './tuning-state.ts';

/** A step whose traffic moved by less than this part of what was to move did not work. */
const MOVED_MIN = 0.25;
/** A domain that is slower than it was by less is not slower. */
const SLOWER_MIN = 1.05;

/**
 * Why a step did not help, by the first whole period after it; undefined where it did. It helped where requests moved, and what they gained is more
 * than what the requests lost that were there already; where nobody lost, nothing speaks against it. Latencies are compared as multiples of what is usual in each domain: requests near a threshold
 * are not those that a domain is full of.
 */
export function failureOf(
  trial: Trial,
  domains: TuningObservation['domains'],
  references: Readonly<Record<string, References>>,
): string | undefined {
  const { domain, share, gaining, before } = trial;
  if (!hasMoved(trial, domains)) return `its requests did not move from ${shownDomain(domain, { domains })}`;
  const theirs = meanSlowdown(gaining, domains, references);
  const gained = share * before.domainRequests * excessOf(domain, gaining, domains, references);
  const tolerated = SLOWER_MIN * Math.max(1, before.gainingSlowdown);
  const lost = before.gainingRequests * Math.max(0, theirs - tolerated);
  if (lost === 0 || gained > lost) return undefined;
  const observed = slowdownOf(own(references, domain), own(domains, domain), 'endToEnd');
  const shown = (name: string): string => shownDomain(name, { domains });
  return `${gaining.map(shown).join(', ')} went from ${before.gainingSlowdown.toFixed(2)} to ${theirs.toFixed(2)} × the usual time; ${shown(domain)} is at ${observed.toFixed(2)} ×`;
}

/** By the domain's part of the traffic, less what chance may do to it. */
function hasMoved({ domain, gaining, share, before }: Trial, domains: TuningObservation['domains']): boolean {
  const requests = requestsOf([domain], domains);
  const all = requests + requestsOf(gaining, domains);
  const allBefore = before.domainRequests + before.gainingRequests;
  if (all === 0 || allBefore === 0) return true;
  const was = before.domainRequests / allBefore;
  const chance = 1 / Math.sqrt(Math.min(all, allBefore));
  return was - requests / all + chance >= MOVED_MIN * share * was;
}

/** By how many times its usual time a domain is slower than others, in its kernels or the whole way, whichever shows more. */
export function excessOf(
  domain: string,
  others: readonly string[],
  domains: TuningObservation['domains'],
  references: Readonly<Record<string, References>>,
): number {
  const pairs = slowdowns(domain, others, domains, references);
  return Math.max(...pairs.map(({ own, theirs }) => own - theirs));
}

/** The same as a ratio. */
export function gapOf(
  domain: string,
  others: readonly string[],
  domains: TuningObservation['domains'],
  references: Readonly<Record<string, References>>,
): number {
  const pairs = slowdowns(domain, others, domains, references);
  return Math.max(...pairs.map(({ own, theirs }) => own / theirs));
}

/** Of a domain, and of others on the average: by their kernels, and the whole way. */
function slowdowns(
  domain: string,
  others: readonly string[],
  domains: TuningObservation['domains'],
  references: Readonly<Record<string, References>>,
): { own: number; theirs: number }[] {
  return SLOWDOWN_METRICS.map((metric) => ({
    own: slowdownOf(own(references, domain), own(domains, domain), metric),
    theirs: meanSlowdown(others, domains, references, metric),
  }));
}

export function requestsOf(names: readonly string[], domains: TuningObservation['domains']): number {
  return names.reduce((sum, name) => sum + (own(domains, name)?.requests ?? 0), 0);
}

/** Weighted by requests; 1 where there are none. */
export function meanSlowdown(
  names: readonly string[],
  domains: TuningObservation['domains'],
  references: Readonly<Record<string, References>>,
  metric: SlowdownMetric = 'endToEnd',
): number {
  const requests = requestsOf(names, domains);
  if (requests === 0) return 1;
  const weighted = names.reduce(
    (sum, name) =>
      sum +
      (own(domains, name)?.requests ?? 0) * slowdownOf(own(references, name), own(domains, name), metric),
    0,
  );
  return weighted / requests;
}
