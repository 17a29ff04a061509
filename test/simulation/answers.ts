import type { ScoredResult } from '../../src/contracts/records.ts';
import type { Asked } from './traffic.ts';

/** Widest request of the leaf `rest`; wider ones are the GPU's. See `policyText`. */
const REST_CANDIDATES_MAX = 12;
/** Clocks that drift, and rounding: shares and ms by which times that two hosts measured may be apart. */
const DRIFT = 0.25;
const ROUNDING_MS = 5;

/** What a result says that cannot be so of what was asked; undefined where there is nothing. */
export function wrongIn(result: ScoredResult, asked: Asked, tookMs: number): string | undefined {
  if (result.outcome === 'EXPIRED')
    return tookMs < asked.deadlineMs * (1 - DRIFT)
      ? `expired after ${tookMs} ms of ${asked.deadlineMs} ms`
      : undefined;
  if (result.outcome !== 'SCORED') return undefined;
  return wrongTarget(result, asked) ?? wrongScores(result, asked) ?? wrongTimes(result, asked);
}

function wrongTarget({ policy, target, fallback }: ScoredResult, { candidates }: Asked): string | undefined {
  const leaf = candidates > REST_CANDIDATES_MAX ? 'wide' : 'rest';
  if (policy?.leaf !== leaf) return `${candidates} candidates went by the leaf ${policy?.leaf}`;
  const pool = leaf === 'wide' ? 'gpu' : 'cpu';
  const isElsewhere = target?.pool !== pool && fallback === null;
  return isElsewhere ? `the leaf ${leaf} sent it to ${target?.pool}, and for no reason` : undefined;
}

function wrongScores({ candidatesScored, scores }: ScoredResult, { candidates }: Asked): string | undefined {
  const isAll = candidatesScored === candidates && scores.length === 4 * candidates;
  return isAll ? undefined : `of ${candidates} candidates ${candidatesScored} were scored`;
}

/** Nothing is computed whose budget was over before, and who is late says so. */
function wrongTimes({ timings, late }: ScoredResult, { deadlineMs }: Asked): string | undefined {
  const { totalMs, inTopicMs, extractMs, routeMs, queueMs } = timings;
  const beforeMs = inTopicMs + extractMs + routeMs + queueMs;
  const limitMs = deadlineMs * (1 + DRIFT) + ROUNDING_MS;
  if (beforeMs > limitMs) return `computed after ${beforeMs} ms of ${deadlineMs} ms`;
  return totalMs > limitMs && !late
    ? `answered after ${totalMs} ms of ${deadlineMs} ms, and not as late`
    : undefined;
}
