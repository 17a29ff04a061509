import {
  type Dispatch,
  makeDispatch,
  makeTimings,
  type RoutableRequest,
  type ScoredResult,
} from '../../contracts/records.ts';
import type { TargetChosen } from '../../core/routing/choose.ts';
import { endedResult } from '../results.ts';
import { type Decided, decisionOf } from './deciding-policy.ts';
import type { RouteJob } from './route-job.ts';

/** Who dispatches, as which of its dispatches, and when. */
export interface DispatchStamp {
  router: string;
  ackPartition: number;
  sequence: number;
  predictedMs: number;
  /** On the router's monotonic clock. */
  nowMs: number;
  /** Version that scores it once more, in shadow. */
  shadowVersion: string | null;
}

/** What the worker gets of a request. */
export function dispatchOf(
  job: RouteJob,
  decided: Decided,
  target: TargetChosen,
  stamp: DispatchStamp,
): Dispatch {
  const { request } = job;
  const { nowMs } = stamp;
  return makeDispatch({
    requestId: request.requestId,
    identity: request.identity,
    accelerator: target.accelerator,
    pool: target.slot.pool,
    kernel: target.kernel,
    memory: target.memory,
    model: request.model,
    modelVersion: target.version,
    shadowVersion: stamp.shadowVersion,
    variant: variantOf(target, request.model),
    scoreLimit: request.baselineCandidates,
    baselineCandidates: request.baselineCandidates,
    policy: decisionOf(decided),
    fallback: target.fallback ?? null,
    degradation: target.degradation ?? null,
    budgetMs: request.budgetMs,
    budgetRemainingMs: job.deadlineMs - nowMs,
    inTopicMs: job.inTopicMs,
    extractMs: request.extractMs,
    routeMs: nowMs - job.receivedAtMs,
    predictedMs: stamp.predictedMs,
    priority: request.priority,
    value: request.value,
    router: stamp.router,
    ackPartition: stamp.ackPartition,
    sequence: stamp.sequence,
    resultPartition: request.resultPartition,
    trace: request.explain ? traceOf(request, decided, target, nowMs) : null,
    payloadSchema: request.payloadSchema,
    payload: request.payload,
  });
}

/** How the decision came about, with how old its inputs were, as JSON. */
function traceOf(request: RoutableRequest, decided: Decided, target: TargetChosen, nowMs: number): string {
  const { slot } = target;
  return JSON.stringify({
    policy: decisionOf(decided),
    path: decided.policy.explain(request),
    signals: request.signals,
    slot: { pool: slot.pool, partition: slot.partition, worker: slot.status.worker },
    slotsConsidered: target.considered,
    expectedWaitMs: target.expectedWaitMs,
    statusAgeMs: nowMs - slot.statusAtMs,
  });
}

function variantOf(target: TargetChosen, family: string): Dispatch['variant'] {
  return target.slot.status.models.some(
    (model) => model.family === family && model.version === target.version && model.variant === 'enhanced',
  )
    ? 'ENHANCED'
    : 'BASELINE';
}

/** The answer to a request that found no slot in its time. */
export function expiredResult(job: RouteJob, nowMs: number): ScoredResult {
  const { request } = job;
  const routeMs = nowMs - job.receivedAtMs;
  return endedResult(
    {
      requestId: request.requestId,
      identity: request.identity,
      model: request.model,
      baselineCandidates: request.baselineCandidates,
      experiments: request.experiments,
      timings: makeTimings({
        inTopicMs: job.inTopicMs,
        extractMs: request.extractMs,
        routeMs,
        totalMs: job.inTopicMs + request.extractMs + routeMs,
        budgetMs: request.budgetMs,
      }),
    },
    {
      outcome: 'EXPIRED',
      code: 'BUDGET_EXHAUSTED',
      message: 'in the router: the budget ran out before a slot could be chosen',
    },
  );
}
