import type { WorkerTable } from './worker-table.ts';

/** One worker's heartbeat on its way to all routers. */
export interface Heartbeat {
  worker: number;
  takenAtMs: number;
  queuedMs: number;
  queuedRequests: number;
  enqueuedMs: number;
  /** By router. */
  lastSequenceSeen: Float64Array;
}

/** Heartbeats under way, by number; a number and its record are given anew once all have heard it. */
export class Heartbeats {
  readonly #beats: Heartbeat[] = [];
  readonly #free: number[] = [];
  readonly #routers: number;

  constructor(routers: number) {
    this.#routers = routers;
  }

  send(workers: WorkerTable, worker: number, nowMs: number): number {
    const number = this.#free.pop() ?? this.#add();
    const beat = this.at(number);
    beat.worker = worker;
    beat.takenAtMs = nowMs;
    beat.queuedMs = workers.queuedMs(worker, nowMs);
    beat.queuedRequests = workers.inFlight(worker);
    beat.enqueuedMs = workers.enqueuedMs(worker);
    for (let router = 0; router < this.#routers; router++)
      beat.lastSequenceSeen[router] = workers.lastSequenceSeen(worker, router);
    return number;
  }

  at(number: number): Heartbeat {
    const beat = this.#beats[number];
    if (beat === undefined) throw new RangeError(`there is no heartbeat ${number}`);
    return beat;
  }

  release(number: number): void {
    this.#free.push(number);
  }

  #add(): number {
    const lastSequenceSeen = new Float64Array(this.#routers);
    this.#beats.push({
      worker: 0,
      takenAtMs: 0,
      queuedMs: 0,
      queuedRequests: 0,
      enqueuedMs: 0,
      lastSequenceSeen,
    });
    return this.#beats.length - 1;
  }
}
