import type { Work } from '../../core/batching/work-queue.ts';
import { MillraceError } from '../../core/errors.ts';
import type { BatchResult, Density, ItemResult, LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobEndings } from './job-endings.ts';
import type { JobQueue } from './job-queue.ts';
import type { LoadMeter } from './load-meter.ts';
import { failedResult, scoredResult } from './results.ts';
import type { ShadowScoring } from './shadow-scoring.ts';
import type { WorkerWindows } from './windows.ts';
import { itemOf, type WorkerJob } from './worker-job.ts';

export interface BatchRunnerConfig {
  /** Batches on the accelerator at once; more than 1 overlaps packing with computing. */
  batchesInFlightMax: number;
  /** How often a request that the model fails on is tried alone before it is a dead letter. */
  tries: number;
}

export interface BatchRunnerDeps {
  clock: Clock;
  queue: JobQueue;
  meter: LoadMeter;
  endings: JobEndings;
  windows: Pick<WorkerWindows, 'scored'>;
  shadow: Pick<ShadowScoring, 'offer'>;
  /** Candidates of a request that is scored by the default row of an item table. */
  onUnknownIds(model: LoadedModel, count: number): void;
  /** What a kernel that skips zeros found in a batch. */
  onDensity(model: LoadedModel, density: Density): void;
  /** Predicted work that was computed, and how long it took. */
  onCompleted(predictedMs: number, computeMs: number): void;
  /** What a batch took by a kernel. */
  onComputed(model: LoadedModel, kernel: string, result: BatchResult): void;
}

type Batch = readonly Work<WorkerJob>[];

/** Runs what the queue says, a few batches at once, and ends what was computed. */
export class BatchRunner {
  readonly #config: BatchRunnerConfig;
  readonly #deps: BatchRunnerDeps;
  #running = 0;
  /** Predicted work of the batches on the accelerator, ms at speed 1. */
  #runningPredictedMs = 0;
  /** Since when the accelerator works on them: the last start of the first, or end of one before. */
  #workingSinceMs = 0;
  /** Batches on the accelerator, by model. */
  readonly #runningOf = new Map<LoadedModel, number>();
  #pumping = false;

  constructor(config: BatchRunnerConfig, deps: BatchRunnerDeps) {
    this.#config = config;
    this.#deps = deps;
  }

  get running(): number {
    return this.#running;
  }

  /** Predicted work on the accelerator, less what is done of it at this speed, ms at speed 1. */
  leftPredictedMs(speed: number): number {
    const doneMs = speed * (this.#deps.clock.monotonicMs() - this.#workingSinceMs);
    return Math.max(0, this.#runningPredictedMs - doneMs);
  }

  isRunning(model: LoadedModel): boolean {
    return this.#runningOf.has(model);
  }

  /** Once per turn of the event loop, after all records of a fetch are queued: the batch is then as full as it can be. */
  pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    this.#deps.clock.after(0, () => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { clock, queue, endings } = this.#deps;
    while (this.#running < this.#config.batchesInFlightMax) {
      const nowMs = clock.monotonicMs();
      const batch = queue.next(nowMs, (work) => endings.expire(work, nowMs));
      if (batch === undefined) return;
      this.#run(batch, nowMs);
    }
  }

  #run(batch: Batch, startedMs: number): void {
    const first = batch[0];
    if (first === undefined) return;
    const items = batch.map((work) => itemOf(work.payload));
    const { model, delivery } = first.payload;
    const predictedMs = predictedMsOf(batch);
    this.#runs(model, 1, predictedMs);
    const deadlineMs = batch.reduce((latest, work) => Math.max(latest, work.deadlineMs), 0);
    model.run(items, delivery.value.kernel, delivery.value.memory, deadlineMs).then(
      (result) => {
        this.#runs(model, -1, predictedMs);
        if (result.density !== undefined) this.#deps.onDensity(model, result.density);
        this.#deps.onComputed(model, delivery.value.kernel, result);
        this.#finish(batch, result, startedMs);
      },
      (error: unknown) => {
        this.#runs(model, -1, predictedMs);
        this.#fail(batch, error, startedMs);
      },
    );
  }

  #runs(model: LoadedModel, more: 1 | -1, predictedMs: number): void {
    if (this.#running === 0 || more === -1) this.#workingSinceMs = this.#deps.clock.monotonicMs();
    this.#running += more;
    // Sums of many differences drift: none is 0 exactly.
    this.#runningPredictedMs = this.#running === 0 ? 0 : this.#runningPredictedMs + more * predictedMs;
    const running = (this.#runningOf.get(model) ?? 0) + more;
    if (running > 0) this.#runningOf.set(model, running);
    else this.#runningOf.delete(model);
  }

  #finish(batch: Batch, result: BatchResult, startedMs: number): void {
    this.#measure(batch, result);
    const bytesMoved = result.bytesMoved / batch.length;
    batch.forEach((work, index) => {
      const item: ItemResult = result.items[index] ?? {
        status: 'failed',
        error: new MillraceError('MODEL_FAILED', 'the backend gave no result for the request'),
      };
      this.#end(work, item, { startedMs, computeMs: result.computeMs, bytesMoved });
    });
    this.#pump();
  }

  /** What is tried again is counted when it is done. */
  #measure(batch: Batch, { items, computeMs }: BatchResult): void {
    const done = batch.filter((_, index) => !isTriedAgain(items[index]));
    if (done.length === 0) {
      this.#deps.meter.failed(computeMs);
      return;
    }
    const predictedMs = predictedMsOf(done);
    this.#deps.meter.completed(done.length, predictedMs, computeMs);
    this.#deps.onCompleted(predictedMs, computeMs);
  }

  #end(
    work: Work<WorkerJob>,
    item: ItemResult,
    { startedMs, computeMs, bytesMoved }: { startedMs: number; computeMs: number; bytesMoved: number },
  ): void {
    const { clock, endings, windows, shadow, onUnknownIds } = this.#deps;
    const { payload: job, deadlineMs } = work;
    const { delivery, request, model } = job;
    const computed = endings.computed(delivery, request, startedMs, computeMs);
    if (item.status !== 'scored') {
      // What the model fails on ends alike, whatever it shared its batch with.
      if (isTriedAgain(item)) {
        this.#failedAlone(work, item.error);
        return;
      }
      endings.end(delivery, failedResult(computed, item.error));
      return;
    }
    const late = deadlineMs < clock.monotonicMs();
    const scored = scoredResult(computed, item.scores, model, late, job.rows?.use);
    const unknownIds = item.scores.fromTables?.unknownIds ?? 0;
    if (unknownIds > 0) onUnknownIds(model, unknownIds);
    windows.scored(job, computed, item.scores, bytesMoved);
    endings.end(delivery, scored);
    shadow.offer(job, itemOf(job));
  }

  /** The backend gave up on the whole batch: one by one, so that one request's fault is not another's; who fails alone, and again, is poison. */
  #fail(batch: Batch, error: unknown, startedMs: number): void {
    const { clock, meter, queue } = this.#deps;
    meter.failed(clock.monotonicMs() - startedMs);
    const [only, ...more] = batch;
    if (only !== undefined && more.length === 0) this.#failedAlone(only, error);
    else for (const work of batch) queue.pushAlone(work);
    this.#pump();
  }

  #failedAlone(work: Work<WorkerJob>, error: unknown): void {
    work.payload.failures += 1;
    if (work.payload.failures < this.#config.tries) this.#deps.queue.pushAlone(work);
    else this.#poison(work.payload, error);
  }

  #poison({ delivery, failures }: WorkerJob, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#deps.endings.deadLetter(delivery, 'POISON', `the model failed on it ${failures} times: ${message}`);
  }
}

function predictedMsOf(batch: Batch): number {
  return batch.reduce((sum, work) => sum + work.predictedMs, 0);
}

function isTriedAgain(item: ItemResult | undefined): boolean {
  return item?.status === 'failed' && item.alone === true;
}
