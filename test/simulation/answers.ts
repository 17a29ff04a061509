import type { ScoredResult } from '../../src/contracts/records.ts';
import type { Asked } from './traffic.ts';

/** Widest request of the leaf `rest`; wider ones are the GPU's. See `policyText`. */
const REST_CANDIDATES_MAX = 12;
/** Of times in whole ms, added up over a few hosts. */
const ROUNDING_MS = 5;

/** What of the run makes things right that are wrong otherwise. */
export interface Circumstances {
  /** Share by which the times of two hosts may be apart. */
  readonly drift: number;
  /** What their clocks may have gone apart by in the run, ms. */
  readonly apartMs: number;
  /** Workers were out of a router's sight for a while. */
  readonly mayFallBack: boolean;
}

/**
 * What a result says that cannot be so of what was asked; undefined where there is nothing.
 * @param tookMs from request to result, by the broker's clock
 */
export function wrongIn(
  result: ScoredResult,
  asked: Asked,
  tookMs: number,
  { drift, apartMs, mayFallBack }: Circumstances,
): string | undefined {
  if (result.outcome === 'EXPIRED')
    return tookMs < asked.deadlineMs * (1 - drift) - apartMs - ROUNDING_MS
      ? `expired after ${tookMs} ms of ${asked.deadlineMs} ms`
      : undefined;
  if (result.outcome !== 'SCORED') return undefined;
  return (
    wrongTarget(result, asked, mayFallBack) ??
    wrongScores(result, asked) ??
    wrongTimes(result, asked.deadlineMs, asked.deadlineMs * (1 + drift) + apartMs + ROUNDING_MS)
  );
}

function wrongTarget(
  { policy, target, fallback }: ScoredResult,
  { candidates }: Asked,
  mayFallBack: boolean,
): string | undefined {
  const leaf = candidates > REST_CANDIDATES_MAX ? 'wide' : 'rest';
  if (policy?.leaf !== leaf) return `${candidates} candidates went by the leaf ${policy?.leaf}`;
  const pool = leaf === 'wide' ? 'gpu' : 'cpu';
  const isElsewhere = target?.pool !== pool && (fallback === null || !mayFallBack);
  return isElsewhere ? `the leaf ${leaf} sent it to ${target?.pool}, and for no reason` : undefined;
}

function wrongScores({ candidatesScored, scores }: ScoredResult, { candidates }: Asked): string | undefined {
  const isAll = candidatesScored === candidates && scores.length === 4 * candidates;
  return isAll ? undefined : `of ${candidates} candidates ${candidatesScored} were scored`;
}

/** Nothing is computed whose budget was over before, and who is late says so. */
function wrongTimes(
  { timings, late }: ScoredResult,
  deadlineMs: number,
  limitMs: number,
): string | undefined {
  const { totalMs, inTopicMs, extractMs, routeMs, queueMs } = timings;
  const beforeMs = inTopicMs + extractMs + routeMs + queueMs;
  if (beforeMs > limitMs) return `computed after ${beforeMs} ms of ${deadlineMs} ms`;
  return totalMs > limitMs && !late
    ? `answered after ${totalMs} ms of ${deadlineMs} ms, and not as late`
    : undefined;
}
