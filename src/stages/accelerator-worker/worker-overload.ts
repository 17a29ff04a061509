import type { Work } from '../../core/batching/work-queue.ts';
import {
  type OverloadReport,
  OverloadRules,
  type OverloadSettings,
} from '../../core/overload/overload-rules.ts';
import { lnDensity, type PricedWork } from '../../core/overload/priced-work.ts';
import type { WorkerJob } from './worker-job.ts';

/** Between two moves of the cut: at 200 ms it oscillates. */
const SAMPLE_MS = 10;

/**
 * The rules of overload over the queue of a worker: what is let in, what runs first and what is lost. It looks when something comes or something
 * could run, and not by a timer: in between nothing changes that the rules go by.
 */
export class WorkerOverload {
  readonly #isStrict: boolean;
  readonly #rules: OverloadRules;
  readonly #priced = new WeakMap<Work<WorkerJob>, PricedWork>();
  #sampledAtMs: number;
  #idled = true;
  /** Since the level was taken, predicted work, ms. */
  #offeredMs = 0;
  #shedMs = 0;

  constructor(settings: OverloadSettings, nowMs: number) {
    this.#isStrict = settings.order === 'strict';
    this.#rules = new OverloadRules(settings, nowMs);
    this.#sampledAtMs = nowMs;
  }

  /** Counts it as asked for. A worker has no other place for an enhanced request than its router has: what is not let in is refused. */
  admits(work: Work<WorkerJob>, nowMs: number): boolean {
    const isAdmitted = this.#rules.arrive(this.#pricedOf(work), nowMs) === 'admit';
    this.#offeredMs += work.predictedMs;
    if (!isAdmitted) this.#shedMs += work.predictedMs;
    return isAdmitted;
  }

  /** The earliest deadline first among what the cut pays for, before the densest of the rest; where the order is strict, enhanced requests after all others. */
  isBefore(a: Work<WorkerJob>, b: Work<WorkerJob>): boolean {
    if (this.#isStrict && a.optional !== b.optional) return b.optional;
    const [x, y] = [this.#pricedOf(a), this.#pricedOf(b)];
    const isEligible = this.#rules.isEligible(x);
    if (isEligible !== this.#rules.isEligible(y)) return isEligible;
    return isEligible ? a.deadlineMs < b.deadlineMs : lnDensity(x.base) > lnDensity(y.base);
  }

  /** Whether its budget ran out, or will before it is computed; asked once for each that could run now. */
  isLost(work: Work<WorkerJob>, nowMs: number): boolean {
    const isLost = !this.#rules.start(this.#pricedOf(work), nowMs).run;
    if (isLost) this.#shedMs += work.predictedMs;
    return isLost;
  }

  /** Share of the predicted work that came since the last call which was refused or lost, 0 … 1. */
  takeSheddingLevel(): number {
    const level =
      this.#shedMs === 0 ? 0 : Math.min(1, this.#shedMs / Math.max(this.#offeredMs, this.#shedMs));
    this.#offeredMs = 0;
    this.#shedMs = 0;
    return level;
  }

  /** The worker asked for work and there was none. */
  idled(): void {
    this.#idled = true;
  }

  completed(predictedMs: number, computeMs: number): void {
    this.#rules.complete(predictedMs, computeMs);
  }

  /** Moves the cut where it is time to. Returns whether the order of the queue changed by that. */
  sample(queue: Iterable<Work<WorkerJob>>, nowMs: number): boolean {
    if (nowMs - this.#sampledAtMs < SAMPLE_MS) return false;
    this.#sampledAtMs = nowMs;
    let queuedMs = 0;
    let eligibleMs = 0;
    let isEmpty = true;
    for (const work of queue) {
      isEmpty = false;
      const priced = this.#pricedOf(work);
      if (!this.#rules.canFinish(priced, work.predictedMs, nowMs)) continue;
      queuedMs += work.predictedMs;
      if (this.#rules.isEligible(priced)) eligibleMs += work.predictedMs;
    }
    const before = this.#rules.cut;
    this.#rules.sample({ queuedMs, eligibleMs, idled: this.#idled }, nowMs);
    // With nothing in the queue, the worker may idle without asking.
    this.#idled = isEmpty;
    return before !== this.#rules.cut;
  }

  report(nowMs: number): OverloadReport {
    return this.#rules.report(nowMs);
  }

  #pricedOf(work: Work<WorkerJob>): PricedWork {
    let priced = this.#priced.get(work);
    if (priced === undefined) {
      const { deadlineMs, optional: isEnhanced, predictedMs: costMs, payload } = work;
      const { priority, value } = payload.delivery.value;
      priced = { deadlineMs, priority, isEnhanced, base: { costMs, value }, extras: [] };
      this.#priced.set(work, priced);
    }
    return priced;
  }
}
