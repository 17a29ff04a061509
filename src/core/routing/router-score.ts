import { dealWorkers } from './deal-workers.ts';
import { type BacklogRules, expectedWaitMs, WorkerBacklog } from './worker-backlog.ts';
import type { DispatchEnd, WorkerSnapshot } from './worker-snapshot.ts';

export interface ScoreRules extends BacklogRules {
  /** What a worker of another router is worse by, in mean services of this router's requests. */
  readonly foreignPenaltyServices: number;
}

export const SCORE_RULES: ScoreRules = {
  floor: 0.7,
  overdueSlackMs: 10,
  shareDivisorMax: 50,
  foreignPenaltyServices: 3.5,
};

const SERVICE_DECAY = 0.99;

/** What stands in a worker's row of the table that is read at every request. */
const FREE_AT_MS = 0;
const FLOOR_MS = 1;
const OVERDUE_FROM_MS = 2;
const SPEED = 3;
/** Services that a worker of another router is worse by; 0 for an own one. */
const PENALTY_SERVICES = 4;
const FIELDS = 5;

/**
 * Chooses the worker that should end a request first: least expected wait + predicted service, where a worker of another router is worse by some
 * services, so that routers which do not see each other's dispatches do not meet at the same idle worker, and yet spill where their own are busy.
 * Workers are numbered from 0; times are ms on the router's clock.
 */
export class RouterScore {
  readonly #router: number;
  readonly #declared: readonly number[];
  readonly #rules: ScoreRules;
  readonly #workers: WorkerBacklog[];
  /** What a choice needs of each worker, side by side: a choice reads all of them, and a change writes one. */
  readonly #rows: Float64Array;
  /** Numbers of the workers that are there. */
  #live: number[];
  #serviceMs = 0;

  /** @param declared the speed that each worker says of itself, predicted work per ms */
  constructor(router: number, declared: readonly number[], rules: ScoreRules = SCORE_RULES) {
    this.#router = router;
    this.#declared = declared;
    this.#rules = rules;
    this.#workers = declared.map((speed) => new WorkerBacklog(speed, rules));
    this.#live = declared.map((_, worker) => worker);
    this.#rows = new Float64Array(declared.length * FIELDS);
    for (const worker of this.#live) this.#write(worker);
  }

  /** Deals the workers anew. One that was away begins anew as well. */
  membersChanged(isLive: readonly boolean[], routers: readonly number[]): void {
    const wasLive = new Set(this.#live);
    const owners = dealWorkers(
      this.#declared.map((speed, worker) => (isLive[worker] === true ? speed : undefined)),
      routers,
    );
    this.#live = [];
    this.#declared.forEach((speed, worker) => {
      if (isLive[worker] !== true) return;
      this.#live.push(worker);
      if (!wasLive.has(worker)) this.#workers[worker] = new WorkerBacklog(speed, this.#rules);
      this.#at(worker).isOwned = owners[worker] === this.#router;
      this.#write(worker);
    });
  }

  /**
   * The worker with the least score, ties at random.
   * @returns undefined where no worker is there
   */
  choose(predictedMs: number, nowMs: number, random: () => number): number | undefined {
    let best: number | undefined;
    let bestMs = Number.POSITIVE_INFINITY;
    let ties = 1;
    for (const worker of this.#live) {
      const scoreMs = this.#scoreMs(worker * FIELDS, predictedMs, nowMs);
      if (scoreMs < bestMs) {
        best = worker;
        bestMs = scoreMs;
        ties = 1;
      } else if (scoreMs === bestMs) {
        ties += 1;
        if (random() * ties < 1) best = worker;
      }
    }
    return best;
  }

  dispatched(worker: number, sequence: number, predictedMs: number, nowMs: number): void {
    const backlog = this.#at(worker);
    backlog.dispatched(sequence, predictedMs, nowMs);
    this.#write(worker);
    const serviceMs = predictedMs / backlog.speed;
    this.#serviceMs =
      this.#serviceMs === 0
        ? serviceMs
        : this.#serviceMs + (1 - SERVICE_DECAY) * (serviceMs - this.#serviceMs);
  }

  acknowledged(worker: number, end: DispatchEnd, snapshot: WorkerSnapshot, nowMs: number): void {
    const backlog = this.#at(worker);
    backlog.ended(end, nowMs);
    backlog.observe(snapshot);
    this.#write(worker);
  }

  heard(worker: number, snapshot: WorkerSnapshot): void {
    this.#at(worker).observe(snapshot);
    this.#write(worker);
  }

  #scoreMs(row: number, predictedMs: number, nowMs: number): number {
    const rows = this.#rows;
    const waitMs = expectedWaitMs(
      rows[row + FREE_AT_MS] ?? 0,
      rows[row + FLOOR_MS] ?? 0,
      rows[row + OVERDUE_FROM_MS] ?? 0,
      nowMs,
    );
    const penaltyMs = (rows[row + PENALTY_SERVICES] ?? 0) * this.#serviceMs;
    return waitMs + predictedMs / (rows[row + SPEED] ?? 1) + penaltyMs;
  }

  #write(worker: number): void {
    const backlog = this.#at(worker);
    const row = worker * FIELDS;
    this.#rows[row + FREE_AT_MS] = backlog.freeAtMs;
    this.#rows[row + FLOOR_MS] = backlog.floorMs;
    this.#rows[row + OVERDUE_FROM_MS] = backlog.overdueFromMs;
    this.#rows[row + SPEED] = backlog.speed;
    this.#rows[row + PENALTY_SERVICES] = backlog.isOwned ? 0 : this.#rules.foreignPenaltyServices;
  }

  #at(worker: number): WorkerBacklog {
    const backlog = this.#workers[worker];
    if (backlog === undefined)
      throw new RangeError(`worker ${worker}: there are those from 0 to ${this.#workers.length - 1}`);
    return backlog;
  }
}
