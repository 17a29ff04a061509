import type { Work, WorkQueue } from './work-queue.ts';

export interface BatchLimits {
  requestsMax: number;
  candidatesMax: number;
  /** Of the predicted service time, ms: whatever arrives meanwhile waits for so long. The first one runs however long it takes. */
  msMax: number;
}

export interface BatchPlan<T> {
  /** Work whose budget ran out, or that is lost otherwise: it is answered, not computed. */
  expired: Work<T>[];
  /** What runs now, all of one batch key; empty when the queue is. */
  batch: Work<T>[];
}

/** Work of another key is looked past, but not without end: the queue is a heap, and each look costs a pop and a push. */
const LOOK_PAST_MAX = 32;

/**
 * Takes the next batch off the queue: expired work is dropped first, then work of the first one's key is added while the limits
 * hold and the batch, as `predictMs` says, still ends before the earliest deadline in it (the first one always runs).
 * @param isLost what is not to be computed any more
 * @param predictMs service time of a batch, ms, from requests and candidates (C_R + N·C_C: the request side is shared)
 */
export function planBatch<T>(
  queue: WorkQueue<T>,
  limits: BatchLimits,
  nowMs: number,
  predictMs: (requests: number, candidates: number, batchKey: string) => number,
  isLost: (work: Work<T>) => boolean = ({ deadlineMs }) => deadlineMs <= nowMs,
): BatchPlan<T> {
  const expired: Work<T>[] = [];
  const batch: Work<T>[] = [];
  const passed: Work<T>[] = [];
  let candidates = 0;
  let earliestMs = Number.POSITIVE_INFINITY;
  while (batch.length < limits.requestsMax && passed.length < LOOK_PAST_MAX) {
    const next = queue.pop();
    if (next === undefined) break;
    if (isLost(next)) {
      expired.push(next);
      continue;
    }
    const first = batch[0];
    if (first !== undefined) {
      if (next.batchKey !== first.batchKey) {
        passed.push(next);
        continue;
      }
      const total = candidates + next.candidates;
      const serviceMs = predictMs(batch.length + 1, total, next.batchKey);
      const endsByMs = Math.min(earliestMs, next.deadlineMs);
      if (total > limits.candidatesMax || serviceMs > limits.msMax || nowMs + serviceMs > endsByMs) {
        passed.push(next);
        break;
      }
    }
    batch.push(next);
    candidates += next.candidates;
    earliestMs = Math.min(earliestMs, next.deadlineMs);
  }
  for (const work of passed) queue.push(work);
  return { expired, batch };
}
