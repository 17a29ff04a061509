import type { Codecs, RecordCodec } from '../../contracts/codec.ts';
import { type Dispatch, type ScoredResult, type ScoreRequest, VARIANTS } from '../../contracts/records.ts';
import { planBatch } from '../../core/batching/plan.ts';
import { type Work, WorkQueue } from '../../core/batching/work-queue.ts';
import { type ErrorCode, MillraceError } from '../../core/errors.ts';
import { Speed } from '../../core/latency/speed.ts';
import { parseModelName } from '../../core/request/family.ts';
import type { BatchResult, ItemResult, LoadedModel, ScoreItem } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { InboundRecord } from '../../ports/message-bus.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ResultWriter } from '../results.ts';
import type { Delivery } from '../run-stage.ts';
import { SchemaWait } from '../schema-wait.ts';
import type { AckSender } from './ack-sender.ts';
import { type Computed, failedResult, scoredResult, unscoredResult } from './results.ts';
import { ShadowScoring } from './shadow-scoring.ts';
import type { WorkerWindows } from './windows.ts';

export interface WorkerConfig {
  worker: string;
  pool: string;
  simulated: boolean;
  /** Predicted work per busy time that the device's profile lets expect, before anything was measured. */
  expectedSpeed: number;
  batchRequestsMax: number;
  batchCandidatesMax: number;
  /** Of a batch's predicted service time, ms. */
  batchMsMax: number;
  /** Batches on the accelerator at once; more than 1 overlaps packing with computing. */
  batchesInFlightMax: number;
  /** How often a request that the model fails on is tried alone before it is a dead letter. */
  tries: number;
}

export interface WorkerDeps {
  clock: Clock;
  codecs: Pick<Codecs, 'learn'>;
  telemetry: Telemetry;
  requestCodec: RecordCodec<ScoreRequest>;
  results: ResultWriter;
  acks: AckSender;
  windows: WorkerWindows;
  /** The loaded version that serves a dispatch, if this worker has one. */
  modelFor(family: string, version: string | null, variant: Dispatch['variant']): LoadedModel | undefined;
}

/** A dispatch in the worker's queue. */
export interface WorkerJob {
  delivery: Delivery<Dispatch>;
  request: ScoreRequest;
  model: LoadedModel;
  /** How often the model failed on it alone. */
  failures: number;
}

const SERVICE_DECAY = 0.9;

/**
 * Queue, batches, model: dispatches are queued earliest deadline first, expired ones are answered before computing, the rest runs
 * in batches across requests. Results go out and the dispatch is acknowledged once they are stored.
 */
export class Worker {
  readonly #config: WorkerConfig;
  readonly #deps: WorkerDeps;
  readonly #queue = new WorkQueue<WorkerJob>();
  /** Work of batches that failed: each is tried alone, before anything else. */
  #alone: Work<WorkerJob>[] = [];
  readonly #schemaWait: SchemaWait<Delivery<Dispatch>>;
  #running = 0;
  /** Batches on the accelerator, by model. */
  readonly #runningOf = new Map<LoadedModel, number>();
  #serviceMs = 0;
  /** Predicted work of one request, decayed mean, ms. */
  #requestMs = 0;
  #enqueuedPredictedMs = 0;
  #completedPredictedMs = 0;
  #busyMs = 0;
  readonly #speed: Speed;
  readonly #shadow: ShadowScoring;
  #pumping = false;

  constructor(config: WorkerConfig, deps: WorkerDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#schemaWait = new SchemaWait('accelerator-worker', deps, (delivery, error) =>
      this.#deadLetter(delivery, 'POISON', `failed after its schema was found: ${String(error)}`),
    );
    this.#speed = new Speed(config.expectedSpeed);
    const { clock, windows, telemetry, modelFor } = deps;
    this.#shadow = new ShadowScoring({
      pool: config.pool,
      clock,
      windows,
      requests: telemetry.counter({
        name: 'millrace_shadow_requests_total',
        help: 'Requests of the sample that a model version on its way to live scores beside the live one, by pool and outcome.',
        labels: ['pool', 'outcome'],
      }),
      modelFor: (family, version) => modelFor(family, version, 'BASELINE'),
      isIdle: () => this.#running === 0 && this.#queue.length === 0 && this.#alone.length === 0,
      busyMs: () => this.#busyMs,
    });
  }

  /** For heartbeats, acknowledgements and metrics. */
  load(): WorkerLoad {
    return {
      queued: this.#queue.length,
      running: this.#running,
      queuedPredictedMs: this.#queue.predictedMs,
      enqueuedPredictedMs: this.#enqueuedPredictedMs,
      completedPredictedMs: this.#completedPredictedMs,
      busyMs: this.#busyMs,
      speed: this.#speed.value(),
      serviceMs: this.#serviceMs,
      batchRequests: this.#batchRequests(),
    };
  }

  /** Whether a request here waits for this model, or is computed by it. */
  isUsing(model: LoadedModel): boolean {
    const isOf = (work: Work<WorkerJob>): boolean => work.payload.model === model;
    return (
      this.#shadow.isUsing(model) ||
      (this.#runningOf.get(model) ?? 0) > 0 ||
      this.#alone.some(isOf) ||
      this.#queue.some(isOf)
    );
  }

  /** How many requests like those of late make a full batch: what a router should have under way so that no batch goes out half full. */
  #batchRequests(): number {
    const { batchRequestsMax, batchMsMax } = this.#config;
    return this.#requestMs === 0
      ? batchRequestsMax
      : Math.max(1, Math.min(batchRequestsMax, Math.floor(batchMsMax / this.#requestMs)));
  }

  handle(delivery: Delivery<Dispatch>): void {
    this.#deps.acks.arrived(delivery);
    this.#decode(delivery);
  }

  /** Gives up queued work whose slot went away; what runs is finished. */
  abandon(gone: (record: InboundRecord) => boolean): void {
    const isGone = (work: Work<WorkerJob>): boolean => gone(work.payload.delivery.record);
    const queued = [...this.#queue.remove(isGone), ...this.#alone.filter(isGone)];
    this.#alone = this.#alone.filter((work) => !isGone(work));
    const waiting = this.#schemaWait.abandon((delivery) => gone(delivery.record));
    for (const delivery of [...queued.map((work) => work.payload.delivery), ...waiting]) {
      this.#deps.acks.abandoned(delivery);
      delivery.abandon();
    }
  }

  #decode(delivery: Delivery<Dispatch>): void {
    const decoded = this.#deps.requestCodec.decode(delivery.value.payload);
    switch (decoded.status) {
      case 'ok':
        this.#admit(delivery, decoded.value);
        return;
      case 'unreadable':
        this.#deadLetter(
          delivery,
          decoded.code,
          `the request inside the dispatch cannot be read: ${decoded.message}`,
        );
        return;
      case 'schema-unknown':
        this.#schemaWait.wait(delivery, decoded.schemaId, () => this.#decode(delivery));
        return;
      default:
        decoded satisfies never;
    }
  }

  #admit(delivery: Delivery<Dispatch>, request: ScoreRequest): void {
    const dispatch = delivery.value;
    const { model: family, modelVersion, variant } = dispatch;
    const model = this.#deps.modelFor(family, modelVersion, variant);
    const isPinned = parseModelName(request.model).version !== undefined;
    const other = model !== undefined || isPinned ? undefined : this.#deps.modelFor(family, null, variant);
    if (other !== undefined) {
      this.#queueUp(inPlace(delivery, other), request, other);
      return;
    }
    if (model === undefined) {
      const error = new MillraceError('UNKNOWN_MODEL', 'this worker has no such model version', {
        value: `${dispatch.model}@${dispatch.modelVersion ?? dispatch.variant}`,
        advice: 'Wait until pool status shows the version, then send the request again',
      });
      this.#end(delivery, failedResult(this.#computed(delivery, request), error));
      return;
    }
    this.#queueUp(delivery, request, model);
  }

  #queueUp(delivery: Delivery<Dispatch>, request: ScoreRequest, model: LoadedModel): void {
    const dispatch = delivery.value;
    // One that is no number would stay in every sum.
    const predictedMs = Number.isFinite(dispatch.predictedMs) ? Math.max(0, dispatch.predictedMs) : 0;
    this.#enqueuedPredictedMs += predictedMs;
    this.#queue.push({
      deadlineMs: delivery.receivedAtMs + dispatch.budgetRemainingMs - delivery.inTopicMs,
      optional: dispatch.variant === VARIANTS[1],
      batchKey: `${model.family}@${model.version} ${dispatch.kernel} ${dispatch.memory}`,
      candidates: dispatch.scoreLimit,
      predictedMs,
      payload: { delivery, request, model, failures: 0 },
    });
    this.#schedulePump();
  }

  /** Once per turn of the event loop, after all records of a fetch are queued: the batch is then as full as it can be. */
  #schedulePump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    this.#deps.clock.after(0, () => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#running < this.#config.batchesInFlightMax) {
      const nowMs = this.#deps.clock.monotonicMs();
      const batch = this.#nextAlone(nowMs) ?? this.#nextBatch(nowMs);
      if (batch === undefined) return;
      this.#run(batch, nowMs);
    }
  }

  #nextAlone(nowMs: number): Work<WorkerJob>[] | undefined {
    for (let next = this.#alone.shift(); next !== undefined; next = this.#alone.shift()) {
      if (next.deadlineMs > nowMs) return [next];
      this.#expire(next, nowMs);
    }
    return undefined;
  }

  #nextBatch(nowMs: number): Work<WorkerJob>[] | undefined {
    const limits = {
      requestsMax: this.#config.batchRequestsMax,
      candidatesMax: this.#config.batchCandidatesMax,
      msMax: this.#config.batchMsMax,
    };
    for (let head = this.#queue.peek(); head !== undefined; head = this.#queue.peek()) {
      const { model } = head.payload;
      const plan = planBatch(this.#queue, limits, nowMs, (requests, candidates) =>
        model.predictMs(requests, candidates),
      );
      for (const work of plan.expired) this.#expire(work, nowMs);
      if (plan.batch.length > 0) return plan.batch;
    }
    return undefined;
  }

  #run(batch: readonly Work<WorkerJob>[], startedMs: number): void {
    const first = batch[0];
    if (first === undefined) return;
    this.#running += 1;
    const items = batch.map((work) => itemOf(work.payload));
    const { model, delivery } = first.payload;
    this.#runs(model, 1);
    model.run(items, delivery.value.kernel, delivery.value.memory).then(
      (result) => {
        this.#runs(model, -1);
        this.#finish(batch, result, startedMs);
      },
      (error: unknown) => {
        this.#runs(model, -1);
        this.#fail(batch, error, startedMs);
      },
    );
  }

  #runs(model: LoadedModel, more: 1 | -1): void {
    const running = (this.#runningOf.get(model) ?? 0) + more;
    if (running > 0) this.#runningOf.set(model, running);
    else this.#runningOf.delete(model);
  }

  #finish(batch: readonly Work<WorkerJob>[], result: BatchResult, startedMs: number): void {
    this.#account(result.computeMs);
    const predictedMs = batch.reduce((sum, work) => sum + work.predictedMs, 0);
    this.#completedPredictedMs += predictedMs;
    this.#speed.observe(predictedMs, result.computeMs);
    this.#requestMs = decayed(this.#requestMs, predictedMs / batch.length);
    batch.forEach((work, index) => {
      const item: ItemResult = result.items[index] ?? {
        status: 'failed',
        error: new MillraceError('MODEL_FAILED', 'the backend gave no result for the request'),
      };
      const computed = this.#computed(
        work.payload.delivery,
        work.payload.request,
        startedMs,
        result.computeMs,
      );
      const late = work.deadlineMs < this.#deps.clock.monotonicMs();
      if (item.status === 'scored') {
        const scored = scoredResult(computed, item.scores, work.payload.model, late);
        this.#deps.windows.scored(work.payload, computed, item.scores, result.bytesMoved / batch.length);
        this.#end(work.payload.delivery, scored);
        this.#shadow.offer(work.payload, itemOf(work.payload));
      } else {
        this.#end(work.payload.delivery, failedResult(computed, item.error));
      }
    });
    this.#pump();
  }

  /** The backend gave up on the whole batch: one by one, so that one request's fault is not another's; who fails alone, and again, is poison. */
  #fail(batch: readonly Work<WorkerJob>[], error: unknown, startedMs: number): void {
    this.#account(this.#deps.clock.monotonicMs() - startedMs);
    const retries = batch.length === 1 ? 1 : 0;
    for (const work of batch) {
      work.payload.failures += retries;
      if (work.payload.failures < this.#config.tries) this.#alone.push(work);
      else this.#poison(work.payload, error);
    }
    this.#pump();
  }

  #poison(job: WorkerJob, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#deadLetter(job.delivery, 'POISON', `the model failed on it ${job.failures} times: ${message}`);
  }

  #deadLetter(delivery: Delivery<Dispatch>, code: ErrorCode, message: string): void {
    this.#deps.windows.ended(delivery.value, 'DEAD_LETTERED');
    this.#deps.acks.completed(delivery);
    delivery.deadLetter(code, message);
  }

  #account(computeMs: number): void {
    this.#running -= 1;
    this.#busyMs += computeMs;
    this.#serviceMs = decayed(this.#serviceMs, computeMs);
  }

  #expire(work: Work<WorkerJob>, nowMs: number): void {
    const { delivery, request } = work.payload;
    this.#end(
      delivery,
      unscoredResult(this.#computed(delivery, request, nowMs), {
        outcome: 'EXPIRED',
        code: 'BUDGET_EXHAUSTED',
        message: `the budget of ${Math.round(delivery.value.budgetMs)} ms ran out before compute, in the queue of ${this.#config.worker}`,
      }),
    );
  }

  #end(delivery: Delivery<Dispatch>, result: ScoredResult): void {
    this.#deps.windows.ended(delivery.value, result.outcome, result.late);
    this.#deps.acks.completed(delivery);
    delivery.finish([this.#deps.results.record(result, delivery.value.resultPartition)]);
  }

  #computed(
    delivery: Delivery<Dispatch>,
    request?: ScoreRequest,
    startedMs?: number,
    computeMs = 0,
  ): Computed {
    const nowMs = this.#deps.clock.monotonicMs();
    const queueMs = (startedMs ?? nowMs) - delivery.receivedAtMs;
    return {
      delivery,
      request,
      queueMs,
      computeMs,
      worker: this.#config.worker,
      simulated: this.#config.simulated,
      nowMs,
    };
  }
}

/** A policy's version that went away since the router heard of it: the newest of the folder answers, and says so. */
function inPlace(delivery: Delivery<Dispatch>, { version }: LoadedModel): Delivery<Dispatch> {
  const { modelVersion, degradation } = delivery.value;
  const why = `version ${version} computed it in place of ${modelVersion}, which the worker lacks`;
  const value = {
    ...delivery.value,
    modelVersion: version,
    degradation: degradation === null ? why : `${degradation}; ${why}`,
  };
  return { ...delivery, value };
}

export interface WorkerLoad {
  queued: number;
  running: number;
  queuedPredictedMs: number;
  enqueuedPredictedMs: number;
  completedPredictedMs: number;
  busyMs: number;
  /** Predicted work per busy time. */
  speed: number;
  serviceMs: number;
  batchRequests: number;
}

/** 0 is no value yet. */
function decayed(mean: number, value: number): number {
  return mean === 0 ? value : SERVICE_DECAY * mean + (1 - SERVICE_DECAY) * value;
}

function itemOf(job: WorkerJob): ScoreItem {
  return {
    requestTensors: job.request.requestTensors,
    candidateTensors: job.request.candidateTensors,
    hints: job.request.hints,
    scoreLimit: job.delivery.value.scoreLimit,
  };
}
