import { MeasuredSpeed } from './measured-speed.ts';
import { OwnDispatches } from './own-dispatches.ts';
import type { DispatchEnd, WorkerSnapshot } from './worker-snapshot.ts';

export interface BacklogRules {
  /** Share of the own unacknowledged work that the backlog is at least, whatever the snapshot says. */
  readonly floor: number;
  /** How late the end of the oldest dispatch may be before its delay counts, ms. */
  readonly overdueSlackMs: number;
  /** For how many dispatches of all routers one of this router's stands at most. */
  readonly shareDivisorMax: number;
}

const SHARE_DECAY = 0.99;
const TRANSPORT_DECAY = 0.95;

/**
 * How long one worker stays busy, as one router can know it: the worker's last snapshot, drained since, and the own dispatches that it did not contain,
 * at the times at which they reach it. Of a worker that another router owns, each of those stands for what all routers sent meanwhile.
 *
 * Times are on the router's clock.
 */
export class WorkerBacklog {
  readonly #rules: BacklogRules;
  readonly #speed: MeasuredSpeed;
  readonly #own = new OwnDispatches();
  readonly #replay = (predictedMs: number, dispatchedAtMs: number): void => {
    this.#reach(predictedMs, Math.max(this.#takenAtMs, dispatchedAtMs + this.#hopMs));
    this.#unseenMs += predictedMs;
  };
  /** Whether it is this router's. */
  isOwned = true;
  /** Predicted work per ms. */
  speed: number;
  /** Work in the snapshot. */
  #queuedMs = 0;
  /** The worker's backlog at `#atMs`, ms of its time. */
  #backlogMs = 0;
  #atMs = 0;
  #takenAtMs = Number.NEGATIVE_INFINITY;
  #lastSequenceSeen = -1;
  /** Predicted work of own dispatches after that one. */
  #unseenMs = 0;
  #enqueuedMs: number | undefined;
  #ownLatelyMs = 0;
  #allLatelyMs = 0;
  /** One way between router and worker. */
  #hopMs = 0;

  /** @param declaredSpeed what the worker says of itself, predicted work per ms */
  constructor(declaredSpeed: number, rules: BacklogRules) {
    this.#rules = rules;
    this.#speed = new MeasuredSpeed(declaredSpeed);
    this.speed = declaredSpeed;
  }

  /** One way between router and worker, ms; 0 before it is known. */
  get hopMs(): number {
    return this.#hopMs;
  }

  /** When the last snapshot was taken, on the router's clock. */
  get takenAtMs(): number {
    return this.#takenAtMs;
  }

  get unacknowledgedMs(): number {
    return this.#own.workMs;
  }

  /** The own share of the work that the worker took in lately, 0 to 1; 1 before it is known. */
  get share(): number {
    return this.#allLatelyMs > 0 ? Math.min(1, this.#ownLatelyMs / this.#allLatelyMs) : 1;
  }

  /** When it will have drained what is known to it, less the hop there: a dispatch made then would not wait. */
  get freeAtMs(): number {
    return this.#atMs + this.#backlogMs - this.#hopMs;
  }

  /** The wait is at least so long, whatever the last snapshot said. */
  get floorMs(): number {
    // Of what is not acknowledged, a hop's worth ends before a dispatch made now arrives, and another is done and on its way back.
    const openMs = this.#own.workMs / this.speed - 2 * this.#hopMs;
    return openMs > 0 ? this.#rules.floor * openMs : 0;
  }

  /** From when on the oldest dispatch is overdue, its slack counted in; Infinity where there is none. */
  get overdueFromMs(): number {
    return this.#own.oldestDueMs + this.#rules.overdueSlackMs;
  }

  /** How long a dispatch made now would wait there, ms. */
  waitMs(nowMs: number): number {
    return expectedWaitMs(this.freeAtMs, this.floorMs, this.overdueFromMs, nowMs);
  }

  dispatched(sequence: number, predictedMs: number, nowMs: number): void {
    const endsMs = nowMs + this.waitMs(nowMs) + predictedMs / this.speed;
    this.#own.push(sequence, predictedMs, nowMs, endsMs + 2 * this.#hopMs);
    this.#unseenMs += predictedMs;
    this.#reach(predictedMs, nowMs + this.#hopMs);
  }

  /** One that is not outstanding here (it was given up, or ended before) is passed over. */
  ended(end: DispatchEnd, nowMs: number): void {
    const ended = this.#own.end(end.sequence);
    if (ended === undefined) return;
    if (end.busyMs > 0) this.#speed.observe(ended.predictedMs, end.busyMs);
    this.speed = this.#speed.value();
    const hopMs = Math.max(0, nowMs - ended.dispatchedAtMs - end.sojournMs) / 2;
    this.#hopMs = this.#hopMs === 0 ? hopMs : this.#hopMs + (1 - TRANSPORT_DECAY) * (hopMs - this.#hopMs);
  }

  /** It will not end here, or nobody will be told. */
  givenUp(sequence: number): void {
    if (this.#own.end(sequence) !== undefined && sequence > this.#lastSequenceSeen) this.#replayAll();
  }

  /** The worker says this speed of itself now, predicted work per ms. */
  declared(speed: number): void {
    this.#speed.declare(speed);
    this.speed = this.#speed.value();
  }

  /** What it says of its queue to all routers alike: not which of this one's dispatches are in it. */
  heard(queuedMs: number, takenAtMs: number): void {
    if (takenAtMs < this.#takenAtMs) return;
    this.#takenAtMs = takenAtMs;
    this.#queuedMs = queuedMs;
    this.#replayAll();
  }

  /** Takes a snapshot in place of the one before; an older one than that is passed over. */
  observe(snapshot: WorkerSnapshot): void {
    if (snapshot.takenAtMs < this.#takenAtMs) return;
    const unseenBeforeMs = this.#unseenMs;
    this.#takenAtMs = snapshot.takenAtMs;
    this.#lastSequenceSeen = Math.max(this.#lastSequenceSeen, snapshot.lastSequenceSeen);
    this.#queuedMs = snapshot.queuedMs;
    this.#replayAll();
    // Of the first nothing is known but that it was from before this router.
    const tookInMs = snapshot.enqueuedMs - (this.#enqueuedMs ?? snapshot.enqueuedMs);
    this.#enqueuedMs = snapshot.enqueuedMs;
    if (tookInMs <= 0) return;
    this.#ownLatelyMs = SHARE_DECAY * this.#ownLatelyMs + Math.max(0, unseenBeforeMs - this.#unseenMs);
    this.#allLatelyMs = SHARE_DECAY * this.#allLatelyMs + tookInMs;
  }

  /** From the snapshot on. */
  #replayAll(): void {
    this.#backlogMs = this.#queuedMs / this.speed;
    this.#atMs = this.#takenAtMs;
    this.#unseenMs = 0;
    this.#own.forEachAfter(this.#lastSequenceSeen, this.#replay);
  }

  #reach(predictedMs: number, atMs: number): void {
    const drainedMs = Math.max(0, this.#backlogMs - Math.max(0, atMs - this.#atMs));
    const count = this.isOwned ? 1 : Math.min(this.#rules.shareDivisorMax, 1 / this.share);
    this.#backlogMs = drainedMs + (count * predictedMs) / this.speed;
    this.#atMs = Math.max(atMs, this.#atMs);
  }
}

/** Drained until now, at least the floor, and the overdue time on top. */
export function expectedWaitMs(
  freeAtMs: number,
  floorMs: number,
  overdueFromMs: number,
  nowMs: number,
): number {
  const waitMs = Math.max(freeAtMs - nowMs, floorMs);
  return nowMs > overdueFromMs ? waitMs + nowMs - overdueFromMs : waitMs;
}
