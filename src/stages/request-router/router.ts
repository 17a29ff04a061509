import type { RecordCodec } from '../../contracts/codec.ts';
import {
  type Dispatch,
  type DispatchAck,
  makeDispatch,
  makeTimings,
  type PolicyDecision,
  type PoolStatus,
  type RoutableRequest,
  type ScoredResult,
} from '../../contracts/records.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import { type Work, WorkQueue } from '../../core/batching/work-queue.ts';
import { type ErrorCode, MillraceError } from '../../core/errors.ts';
import { explainDecision } from '../../core/policy/explain.ts';
import {
  type Choice,
  chooseTarget,
  type PoolsOf,
  type TargetChosen,
  type TargetWanted,
} from '../../core/routing/choose.ts';
import { FleetState } from '../../core/routing/fleet-state.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { InboundRecord, OutboundRecord } from '../../ports/message-bus.ts';
import type { RandomStream } from '../../ports/random.ts';
import { endedResult, type ResultWriter } from '../results.ts';
import type { ActivePolicy } from './active-policy.ts';
import { RouterCounts } from './router-counts.ts';
import { workerStatusOf } from './worker-status.ts';

export interface RouterConfig {
  /** Name with incarnation: acknowledgements to an earlier life are not taken for ours. */
  router: string;
  ackPartition: number;
  creditsMax: number;
  statusStaleMs: number;
  /** Dispatches are given up so long after their budget ran out. */
  giveUpGraceMs: number;
  poolsOf: PoolsOf;
}

export interface RouterDeps {
  clock: Clock;
  random: RandomStream;
  topics: TopicNames;
  dispatchCodec: RecordCodec<Dispatch>;
  results: ResultWriter;
}

/** A request in the router's hands, from whichever record it came. */
export interface RouteJob {
  request: RoutableRequest;
  record: InboundRecord;
  receivedAtMs: number;
  /** Time in topics up to here, the features topic included. */
  inTopicMs: number;
  /** On the router's monotonic clock: when the budget runs out. */
  deadlineMs: number;
  finish(outputs: readonly OutboundRecord[]): void;
  deadLetter(code: ErrorCode, message: string): void;
  abandon(): void;
}

interface Waiting {
  job: RouteJob;
  leaf: number;
}

/** How often waiting requests are looked at when nothing else wakes them. */
const WAITING_CHECK_MS = 5;

/**
 * Routes requests: policy leaf → filter, score, pick → credit → dispatch. What finds no credit or no worker waits, earliest
 * deadline first among those of its leaf and model, until an acknowledgement or a heartbeat makes room, or the budget runs out.
 */
export class Router {
  readonly fleet: FleetState;
  readonly counts = new RouterCounts();
  readonly #config: RouterConfig;
  readonly #deps: RouterDeps;
  /** By leaf and model: for what is in one queue there is a place for all or for none. */
  readonly #waiting = new Map<string, WorkQueue<Waiting>>();
  readonly #random: () => number;
  #policy: ActivePolicy;
  #vector: Float64Array;
  /** Of each leaf of the policy. */
  #targets: readonly TargetWanted[];
  #sequence = 0;
  #wakeUp: Cancel | undefined;

  constructor(config: RouterConfig, deps: RouterDeps, policy: ActivePolicy) {
    this.#config = config;
    this.#deps = deps;
    this.#random = () => deps.random.next();
    this.#policy = policy;
    this.#vector = new Float64Array(policy.compiled.signalNames.length);
    this.#targets = targetsOf(policy);
    this.fleet = new FleetState({ statusStaleMs: config.statusStaleMs, creditsMax: config.creditsMax });
  }

  get policy(): ActivePolicy {
    return this.#policy;
  }

  /** Requests that wait for a credit or a worker. */
  get waiting(): number {
    let waiting = 0;
    for (const queue of this.#waiting.values()) waiting += queue.length;
    return waiting;
  }

  /** A router that has not heard of any worker since its start would let every request expire. */
  unready(): string | undefined {
    return this.fleet.heardOfWorkers ? undefined : 'no worker has been heard of yet';
  }

  /** The swap: requests that wait are decided anew, the most urgent first. */
  setPolicy(policy: ActivePolicy): void {
    const jobs = this.#takeWaiting(() => true).sort((a, b) => a.deadlineMs - b.deadlineMs);
    this.#policy = policy;
    this.#vector = new Float64Array(policy.compiled.signalNames.length);
    this.#targets = targetsOf(policy);
    for (const job of jobs) this.route(job);
  }

  onStatus(status: PoolStatus): void {
    this.fleet.applyStatus(workerStatusOf(status), this.#deps.clock.monotonicMs());
    if (this.#waiting.size > 0) this.#retryWaiting();
  }

  onWorkerGone(worker: string): void {
    this.fleet.removeWorker(worker);
  }

  onAck(ack: DispatchAck): void {
    if (ack.router !== this.#config.router) return;
    if (this.fleet.applyAck(ack, this.#deps.clock.monotonicMs()) && this.#waiting.size > 0)
      this.#retryWaiting();
  }

  route(job: RouteJob): void {
    const leaf = this.#decide(job.request);
    if (this.#attempt(job, leaf)) return;
    this.counts.stalls += 1;
    this.#wait(job, leaf);
  }

  /** Gives up waiting requests whose partition went away. */
  abandon(gone: (record: InboundRecord) => boolean): void {
    for (const job of this.#takeWaiting((waiting) => gone(waiting.job.record))) job.abandon();
  }

  /** Gives up dispatches that nobody can be waiting for any more. */
  sweep(): void {
    this.fleet.sweep(this.#deps.clock.monotonicMs());
  }

  close(): void {
    this.#wakeUp?.();
  }

  #decide(request: RoutableRequest): number {
    const { compiled } = this.#policy;
    const vector = this.#vector;
    const names = compiled.signalNames;
    for (let i = 0; i < names.length; i += 1) vector[i] = request.signals[names[i] ?? ''] ?? Number.NaN;
    return compiled.decide(vector, request.context);
  }

  /**
   * Dispatches the request, or ends it; false when it must wait. It may be called for a request that waited, by whatever woke it up: so what
   * cannot be dispatched at all ends here, as a dead letter, and nobody else is disturbed.
   */
  #attempt(job: RouteJob, leafIndex: number): boolean {
    try {
      return this.#place(job, leafIndex);
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'POISON';
      this.counts.error(code);
      job.deadLetter(code, error instanceof Error ? error.message : String(error));
      return true;
    }
  }

  #place(job: RouteJob, leafIndex: number): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    if (job.deadlineMs <= nowMs) {
      this.#expire(job, nowMs, 'the budget ran out before a slot could be chosen');
      return true;
    }
    const leaf = this.#policy.compiled.leaves[leafIndex];
    const target = this.#targets[leafIndex];
    if (leaf === undefined || target === undefined) throw new Error(`leaf ${leafIndex} is not in the policy`);
    const variant = leaf.variant ?? 'baseline';
    const model = { family: job.request.model, version: job.request.modelVersion ?? undefined, variant };
    const predictedMs = predictedMsOf(job.request);
    const choice: Choice = chooseTarget(
      this.fleet,
      this.#config.poolsOf,
      target,
      model,
      predictedMs,
      nowMs,
      this.#random,
    );
    switch (choice.status) {
      case 'chosen':
        this.#dispatch(job, leaf.id, choice.target, predictedMs, nowMs);
        return true;
      case 'no-credit':
      case 'no-worker':
        return false;
      default:
        choice satisfies never;
        return false;
    }
  }

  #dispatch(job: RouteJob, leafId: string, target: TargetChosen, predictedMs: number, nowMs: number): void {
    const { request } = job;
    const { slot } = target;
    const sequence = this.#sequence + 1;
    const policy = this.#decision(leafId);
    const dispatch = makeDispatch({
      requestId: request.requestId,
      identity: request.identity,
      accelerator: target.accelerator,
      pool: slot.pool,
      kernel: target.kernel,
      memory: target.memory,
      model: request.model,
      modelVersion: target.version,
      variant: variantOf(target, request.model),
      scoreLimit: request.baselineCandidates,
      baselineCandidates: request.baselineCandidates,
      policy,
      fallback: target.fallback ?? null,
      degradation: target.degradation ?? null,
      budgetMs: request.budgetMs,
      budgetRemainingMs: job.deadlineMs - nowMs,
      inTopicMs: job.inTopicMs,
      extractMs: request.extractMs,
      routeMs: nowMs - job.receivedAtMs,
      predictedMs,
      priority: request.priority,
      value: request.value,
      router: this.#config.router,
      ackPartition: this.#config.ackPartition,
      sequence,
      resultPartition: request.resultPartition,
      trace: request.explain ? this.#trace(request, leafId, target) : null,
      payload: request.payload,
    });
    const value = this.#deps.dispatchCodec.encode(dispatch);
    this.#sequence = sequence;
    this.fleet.recordDispatch(slot, {
      sequence,
      predictedMs,
      dispatchedAtMs: nowMs,
      giveUpAtMs: job.deadlineMs + this.#config.giveUpGraceMs,
    });
    this.counts.dispatched(leafId, slot.pool);
    job.finish([
      {
        topic: this.#deps.topics.dispatch(slot.pool),
        partition: slot.partition,
        key: Buffer.from(request.requestId),
        value,
      },
    ]);
  }

  #decision(leaf: string): PolicyDecision {
    const { ref, epoch } = this.#policy;
    return { digest: ref.digest, name: ref.name, version: ref.version, epoch, leaf, arm: 'STABLE' };
  }

  #trace(request: RoutableRequest, leaf: string, target: TargetChosen): string {
    this.#decide(request);
    return JSON.stringify({
      policy: this.#decision(leaf),
      path: explainDecision(this.#policy.compiled, this.#vector, request.context),
      signals: request.signals,
      slot: { pool: target.slot.pool, partition: target.slot.partition, worker: target.slot.status.worker },
      slotsConsidered: target.considered,
      expectedWaitMs: target.expectedWaitMs,
      statusAgeMs: this.#deps.clock.monotonicMs() - target.slot.statusAtMs,
    });
  }

  #expire(job: RouteJob, nowMs: number, message: string): void {
    const { request } = job;
    this.counts.error('BUDGET_EXHAUSTED');
    const routeMs = nowMs - job.receivedAtMs;
    const result: ScoredResult = endedResult(
      {
        requestId: request.requestId,
        identity: request.identity,
        model: request.model,
        baselineCandidates: request.baselineCandidates,
        timings: makeTimings({
          inTopicMs: job.inTopicMs,
          extractMs: request.extractMs,
          routeMs,
          totalMs: job.inTopicMs + request.extractMs + routeMs,
          budgetMs: request.budgetMs,
        }),
      },
      { outcome: 'EXPIRED', code: 'BUDGET_EXHAUSTED', message: `in the router: ${message}` },
    );
    job.finish([this.#deps.results.record(result, request.resultPartition)]);
  }

  #wait(job: RouteJob, leaf: number): void {
    const { model, modelVersion } = job.request;
    const key = `${leaf} ${model}@${modelVersion ?? ''}`;
    let queue = this.#waiting.get(key);
    if (queue === undefined) {
      queue = new WorkQueue<Waiting>();
      this.#waiting.set(key, queue);
    }
    queue.push(waitingWork(job, leaf));
    this.#wakeUp ??= this.#deps.clock.after(WAITING_CHECK_MS, () => {
      this.#wakeUp = undefined;
      this.#sweepWaiting();
    });
  }

  #retryWaiting(): void {
    for (const [key, queue] of this.#waiting) {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (this.#attempt(next.payload.job, next.payload.leaf)) continue;
        queue.push(next);
        break;
      }
      if (queue.length === 0) this.#waiting.delete(key);
    }
  }

  #sweepWaiting(): void {
    this.fleet.sweep(this.#deps.clock.monotonicMs());
    this.#retryWaiting();
    if (this.#waiting.size === 0 || this.#wakeUp !== undefined) return;
    this.#wakeUp = this.#deps.clock.after(WAITING_CHECK_MS, () => {
      this.#wakeUp = undefined;
      this.#sweepWaiting();
    });
  }

  #takeWaiting(match: (waiting: Waiting) => boolean): RouteJob[] {
    const jobs: RouteJob[] = [];
    for (const [key, queue] of this.#waiting) {
      for (const work of queue.remove((candidate) => match(candidate.payload))) jobs.push(work.payload.job);
      if (queue.length === 0) this.#waiting.delete(key);
    }
    return jobs;
  }
}

function targetsOf({ compiled }: ActivePolicy): TargetWanted[] {
  return compiled.leaves.map((leaf) => ({ ...leaf.target, fallback: leaf.fallback }));
}

function waitingWork(job: RouteJob, leaf: number): Work<Waiting> {
  return {
    deadlineMs: job.deadlineMs,
    optional: false,
    batchKey: '',
    candidates: 0,
    predictedMs: 0,
    payload: { job, leaf },
  };
}

/** A request whose cost could not be predicted counts as 1 ms, so that it still weighs in a queue. */
function predictedMsOf(request: RoutableRequest): number {
  const predicted = request.signals['predictedCostMs'];
  return predicted !== undefined && predicted > 0 ? predicted : 1;
}

function variantOf(target: TargetChosen, family: string): Dispatch['variant'] {
  return target.slot.status.models.some(
    (model) => model.family === family && model.version === target.version && model.variant === 'enhanced',
  )
    ? 'ENHANCED'
    : 'BASELINE';
}
