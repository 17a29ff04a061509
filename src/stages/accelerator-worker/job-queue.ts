import { planBatch } from '../../core/batching/plan.ts';
import { type Work, WorkQueue } from '../../core/batching/work-queue.ts';
import type { LoadedModel } from '../../ports/accelerator.ts';
import type { WorkerJob } from './worker-job.ts';
import type { WorkerOverload } from './worker-overload.ts';

export interface JobQueueLimits {
  batchRequestsMax: number;
  batchCandidatesMax: number;
  /** Of a batch's predicted service time, ms. */
  batchMsMax: number;
}

/** Work that waits, and which of it runs next: what must be tried alone, then batches across requests, earliest deadline first, or as the rules of overload say. */
export class JobQueue {
  readonly #limits: JobQueueLimits;
  readonly #queue: WorkQueue<WorkerJob>;
  readonly #overload: WorkerOverload | undefined;
  /** Work of batches that failed: each is tried alone, before anything else. */
  #alone: Work<WorkerJob>[] = [];

  constructor(limits: JobQueueLimits, overload?: WorkerOverload) {
    this.#limits = limits;
    this.#overload = overload;
    this.#queue = new WorkQueue(overload && ((a, b) => overload.isBefore(a, b)));
  }

  /** Without what is to be tried alone. */
  get length(): number {
    return this.#queue.length;
  }

  get predictedMs(): number {
    return this.#queue.predictedMs;
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#alone.length === 0;
  }

  /** Whether what arrives now is to wait here; all is, where no rules of overload are set. */
  admits(work: Work<WorkerJob>, nowMs: number): boolean {
    this.sample(nowMs);
    return this.#overload?.admits(work, nowMs) ?? true;
  }

  /** So that the rules of overload see what waits now. */
  sample(nowMs: number): void {
    if (this.#overload?.sample(this.#queue, nowMs)) this.#queue.sort();
  }

  push(work: Work<WorkerJob>): void {
    this.#queue.push(work);
  }

  pushAlone(work: Work<WorkerJob>): void {
    this.#alone.push(work);
  }

  hasAnyFor(model: LoadedModel): boolean {
    const isOf = (work: Work<WorkerJob>): boolean => work.payload.model === model;
    return this.#alone.some(isOf) || this.#queue.some(isOf);
  }

  /** Removes and returns what `match` picks. */
  remove(match: (job: WorkerJob) => boolean): WorkerJob[] {
    const matches = (work: Work<WorkerJob>): boolean => match(work.payload);
    const removed = [...this.#queue.remove(matches), ...this.#alone.filter(matches)];
    this.#alone = this.#alone.filter((work) => !matches(work));
    return removed.map((work) => work.payload);
  }

  /**
   * What runs now; undefined where nothing waits.
   * @param expire is given the work whose budget ran out on the way, or would while it is computed
   */
  next(nowMs: number, expire: (work: Work<WorkerJob>) => void): readonly Work<WorkerJob>[] | undefined {
    this.sample(nowMs);
    const next = this.#nextAlone(nowMs, expire) ?? this.#nextBatch(nowMs, expire);
    if (next === undefined) this.#overload?.idled();
    return next;
  }

  #nextAlone(nowMs: number, expire: (work: Work<WorkerJob>) => void): Work<WorkerJob>[] | undefined {
    for (let next = this.#alone.shift(); next !== undefined; next = this.#alone.shift()) {
      if (next.deadlineMs > nowMs) return [next];
      expire(next);
    }
    return undefined;
  }

  #nextBatch(nowMs: number, expire: (work: Work<WorkerJob>) => void): Work<WorkerJob>[] | undefined {
    const { batchRequestsMax, batchCandidatesMax, batchMsMax } = this.#limits;
    const overload = this.#overload;
    const limits = { requestsMax: batchRequestsMax, candidatesMax: batchCandidatesMax, msMax: batchMsMax };
    for (let head = this.#queue.peek(); head !== undefined; head = this.#queue.peek()) {
      const { model } = head.payload;
      const plan = planBatch(
        this.#queue,
        limits,
        nowMs,
        (requests, candidates) => model.predictMs(requests, candidates),
        overload && ((work) => overload.isLost(work, nowMs)),
      );
      for (const work of plan.expired) expire(work);
      if (plan.batch.length > 0) return plan.batch;
    }
    return undefined;
  }
}
