import { Heap } from './heap.ts';
import type { Arrival, OverloadReport, OverloadRules } from './overload-rules.ts';
import { lnDensity, type PricedWork } from './priced-work.ts';

/** Work and how many steps of its extras run with it. */
export interface Started<W> {
  work: W;
  extras: number;
}

export type Dropped<W> = (work: W, reason: 'expired' | 'cannot finish') => void;

interface Waiting<W> {
  work: W;
  lnDensity: number;
  arrival: number;
}

/**
 * Work that waits in a pool or a worker, as the rules want it served: the earliest deadline first among what the cut pays for and, where there
 * is none of it, the densest of the rest (the densest first throughout would starve what is merely good enough). What is at the same place runs in order of arrival.
 */
export class OverloadQueue<W extends PricedWork> {
  readonly #rules: OverloadRules;
  readonly #eligible = new Heap<Waiting<W>>(isDueBefore);
  readonly #rest = new Heap<Waiting<W>>(isDenser);
  #arrivals = 0;
  #idled = true;

  constructor(rules: OverloadRules) {
    this.#rules = rules;
  }

  get length(): number {
    return this.#eligible.length + this.#rest.length;
  }

  /** What is not admitted is the caller's to answer or to send on. */
  push(work: W, nowMs: number): Arrival {
    const arrival = this.#rules.arrive(work, nowMs);
    if (arrival !== 'admit') return arrival;
    this.#arrivals += 1;
    this.#place({ work, lnDensity: lnDensity(work.base), arrival: this.#arrivals });
    return arrival;
  }

  /**
   * What a free server runs now; undefined where nothing can.
   * @param drop is given the work that could not end in time
   */
  next(nowMs: number, drop: Dropped<W>): Started<W> | undefined {
    for (;;) {
      const waiting = this.#eligible.pop() ?? this.#rest.pop();
      if (waiting === undefined) {
        this.#idled = true;
        return undefined;
      }
      const start = this.#rules.start(waiting.work, nowMs);
      if (start.run) return { work: waiting.work, extras: start.extras };
      drop(waiting.work, start.reason);
    }
  }

  complete(costMs: number, busyMs: number): void {
    this.#rules.complete(costMs, busyMs);
  }

  /** Every 10 ms: the cut moves, and with it what is eligible. */
  tick(nowMs: number): void {
    const isInTime = ({ work }: Waiting<W>): boolean => this.#rules.canFinish(work, work.base.costMs, nowMs);
    let eligibleMs = 0;
    let queuedMs = 0;
    for (const waiting of this.#eligible) {
      if (!isInTime(waiting)) continue;
      eligibleMs += this.#rules.paidMs(waiting.work);
      queuedMs += fullMs(waiting.work);
    }
    for (const waiting of this.#rest) if (isInTime(waiting)) queuedMs += fullMs(waiting.work);
    const before = this.#rules.cut;
    this.#rules.sample({ queuedMs, eligibleMs, idled: this.#idled }, nowMs);
    // With nothing in the queue, servers may idle without asking.
    this.#idled = this.length === 0;
    if (before !== this.#rules.cut) this.#sort();
  }

  report(nowMs: number): OverloadReport {
    return this.#rules.report(nowMs);
  }

  #place(waiting: Waiting<W>): void {
    (this.#rules.isEligible(waiting.work) ? this.#eligible : this.#rest).push(waiting);
  }

  #sort(): void {
    const all = [...this.#eligible.clear(), ...this.#rest.clear()];
    for (const waiting of all) this.#place(waiting);
  }
}

function fullMs({ base, extras }: PricedWork): number {
  return extras.reduce((sum, { costMs }) => sum + costMs, base.costMs);
}

function isDueBefore<W extends PricedWork>(a: Waiting<W>, b: Waiting<W>): boolean {
  return (
    a.work.deadlineMs < b.work.deadlineMs ||
    (a.work.deadlineMs === b.work.deadlineMs && a.arrival < b.arrival)
  );
}

function isDenser<W extends PricedWork>(a: Waiting<W>, b: Waiting<W>): boolean {
  return a.lnDensity > b.lnDensity || (a.lnDensity === b.lnDensity && a.arrival < b.arrival);
}
