import { Speed } from '../latency/speed.ts';
import { Demand } from './demand.ts';
import { OptionalAllowance } from './optional-allowance.ts';
import { OverloadDetector } from './overload-detector.ts';
import {
  atShare,
  baseRank,
  type Cut,
  extraRank,
  isAbove,
  NO_CUT,
  type OverloadOrder,
  tiersOf,
} from './overload-order.ts';
import type { PricedWork, WorkPart } from './priced-work.ts';
import { Throughput } from './throughput.ts';

export interface OverloadSettings {
  order: OverloadOrder;
  /** How long a request may take, ms. */
  slaMs: number;
  /** Predicted work that all servers together are expected to do per ms, before any was measured. */
  expectedThroughput: number;
}

/** `reroute`: an enhanced request that its baseline pool can still answer. */
export type Arrival = 'admit' | 'reject' | 'reroute';

export type Start =
  /** The first so many steps of its extras run with it. */
  { run: true; extras: number } | { run: false; reason: 'expired' | 'cannot finish' };

/** What the queue knew between two ticks. */
export interface QueueSample {
  /** Predicted work that waits and can still end in time, as it would run without a cut, ms. */
  queuedMs: number;
  /** Of it what the cut pays for. */
  eligibleMs: number;
  /** A server asked for work and found none since the last sample. */
  idled: boolean;
}

export interface OverloadReport {
  isOverloaded: boolean;
  /** Optional work was cut of late: what grants it has no effect, and integrators must hold. */
  isSaturated: boolean;
  /** Baseline work was refused or dropped of late. */
  isBaselineShed: boolean;
  cut: Cut;
  /** Predicted work per ms. */
  throughput: number;
}

const HALF_LIFE_MS = 500;
/** Arrivals this far below the cut may yet be paid for, as it moves. */
const ARRIVAL_SHARE = 0.5;
/** Work that starts in an overload must still fit when it takes so much longer than predicted: time spent on late work is lost. */
const FINISH_MARGIN = 1.3;
/** As shares of the SLA: the wait that the cap is steered to, and how far off it changes the cap by 1. */
const WAIT_TARGET = 0.2;
const WAIT_RANGE = 2;
const CAP_MIN = 0.3;
const CAP_MAX = 1.5;

/**
 * Decides what an overloaded pool or worker lets in, drops and trims, by value per ms; who enforces it keeps the queue (`OverloadQueue`).
 * Costs of all that is asked for go into a decayed histogram; the cut is where, from the top of the order down, they reach what the servers can
 * do. Nothing is cut in calm times.
 */
export class OverloadRules {
  readonly #settings: OverloadSettings;
  readonly #demand: Demand;
  readonly #detector: OverloadDetector;
  readonly #throughput: Throughput;
  readonly #speed = new Speed(1);
  readonly #allowance: OptionalAllowance;
  #cut: Cut = NO_CUT;
  #arrivalCut: Cut = NO_CUT;
  #sampledAtMs: number;
  #completedMs = 0;
  #optionalCutAtMs = Number.NEGATIVE_INFINITY;
  #baselineShedAtMs = Number.NEGATIVE_INFINITY;

  constructor(settings: OverloadSettings, nowMs: number) {
    this.#settings = settings;
    this.#demand = new Demand(tiersOf(settings.order), HALF_LIFE_MS, nowMs);
    this.#detector = new OverloadDetector(settings.slaMs);
    this.#throughput = new Throughput(settings.expectedThroughput);
    this.#allowance = new OptionalAllowance(settings.slaMs);
    this.#sampledAtMs = nowMs;
  }

  get cut(): Cut {
    return this.#cut;
  }

  /** Predicted work that the servers do per ms, as completions showed. */
  get throughput(): number {
    return this.#throughput.perMs();
  }

  /** Counts the demand, whatever comes of it. */
  arrive(work: PricedWork, nowMs: number): Arrival {
    const { order } = this.#settings;
    const rank = baseRank(order, work);
    this.#demand.add(rank, work.base.costMs, nowMs);
    for (const extra of work.extras) this.#demand.add(extraRank(order, extra), extra.costMs, nowMs);
    if (isAbove(rank, this.#arrivalCut)) return 'admit';
    if (work.isEnhanced) return 'reroute';
    this.#baselineShedAtMs = nowMs;
    return 'reject';
  }

  /** Whether the cut pays for its base work. */
  isEligible(work: PricedWork): boolean {
    return isAbove(baseRank(this.#settings.order, work), this.#cut);
  }

  canFinish(work: PricedWork, costMs: number, nowMs: number): boolean {
    const margin = this.#detector.isOverloaded ? FINISH_MARGIN : 1;
    return nowMs + (margin * costMs) / this.#speed.value() <= work.deadlineMs;
  }

  /** What becomes of work that a server would start now. */
  start(work: PricedWork, nowMs: number): Start {
    const fits = this.canFinish(work, work.base.costMs, nowMs);
    if (fits && work.deadlineMs > nowMs) return { run: true, extras: this.#extrasOf(work, nowMs) };
    if (!work.isEnhanced) this.#baselineShedAtMs = nowMs;
    return { run: false, reason: work.deadlineMs <= nowMs ? 'expired' : 'cannot finish' };
  }

  /** @param busyMs how long the server took for it */
  complete(costMs: number, busyMs: number): void {
    this.#completedMs += costMs;
    this.#speed.observe(costMs, busyMs);
  }

  /** Every 10 ms: moves the cut. At 200 ms it oscillates. */
  sample({ queuedMs, eligibleMs, idled }: QueueSample, nowMs: number): void {
    if (!idled) this.#throughput.observe(this.#completedMs, nowMs - this.#sampledAtMs);
    this.#completedMs = 0;
    this.#sampledAtMs = nowMs;
    const perMs = this.#throughput.perMs();
    // By all that waits: a cut that is too high leaves nothing eligible, and calm would let all of it back in at once.
    this.#cut = this.#detector.observe(queuedMs / perMs)
      ? this.#demand.cutAt(this.#capMs(eligibleMs / perMs, nowMs), nowMs)
      : NO_CUT;
    this.#arrivalCut = atShare(this.#cut, ARRIVAL_SHARE);
  }

  /** Predicted work that the queue's eligible part counts, ms: the base and what the cut leaves of the extras. */
  paidMs(work: PricedWork): number {
    let paidMs = work.base.costMs;
    for (const extra of work.extras) {
      if (!isAbove(extraRank(this.#settings.order, extra), this.#cut)) break;
      paidMs += extra.costMs;
    }
    return paidMs;
  }

  report(nowMs: number): OverloadReport {
    return {
      isOverloaded: this.#detector.isOverloaded,
      isSaturated: nowMs - this.#optionalCutAtMs < HALF_LIFE_MS,
      isBaselineShed: this.#isBaselineShed(nowMs),
      cut: this.#cut,
      throughput: this.#throughput.perMs(),
    };
  }

  #extrasOf(work: PricedWork, nowMs: number): number {
    let costMs = work.base.costMs;
    for (const [index, extra] of work.extras.entries()) {
      costMs += extra.costMs;
      if (this.canFinish(work, costMs, nowMs) && this.#keeps(extra, nowMs)) continue;
      if (this.#detector.isOverloaded) this.#optionalCutAtMs = nowMs;
      return index;
    }
    return work.extras.length;
  }

  #keeps(extra: WorkPart, nowMs: number): boolean {
    if (this.#detector.isOverloaded) this.#allowance.offered(extra.costMs);
    if (isAbove(extraRank(this.#settings.order, extra), this.#cut)) return true;
    return !this.#isBaselineShed(nowMs) && this.#allowance.take(extra.costMs);
  }

  #isBaselineShed(nowMs: number): boolean {
    return nowMs - this.#baselineShedAtMs < HALF_LIFE_MS;
  }

  #capMs(waitMs: number, nowMs: number): number {
    const { slaMs } = this.#settings;
    const change = 1 + (WAIT_TARGET * slaMs - waitMs) / (WAIT_RANGE * slaMs);
    return (
      this.#throughput.perMs() * this.#demand.windowMs(nowMs) * Math.min(CAP_MAX, Math.max(CAP_MIN, change))
    );
  }
}
