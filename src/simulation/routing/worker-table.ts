import { NONE, type RequestTable } from './request-table.ts';

/** Workers and their queues, by number, field by field. */
export class WorkerTable {
  readonly #requests: RequestTable;
  readonly #routers: number;
  readonly speed: Float64Array;
  readonly isLive: boolean[];
  /** Real work that was dispatched and is not done, less nothing of what runs. */
  readonly #outstandingMs: Float64Array;
  readonly #queuedMs: Float64Array;
  readonly #queuedRequests: Int32Array;
  readonly #enqueuedMs: Float64Array;
  readonly #lastSequence: Float64Array;
  readonly #running: Int32Array;
  readonly #runningSinceMs: Float64Array;
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  readonly busyMs: Float64Array;

  constructor(speeds: readonly number[], routers: number, requests: RequestTable) {
    const workers = speeds.length;
    this.#requests = requests;
    this.#routers = routers;
    this.speed = Float64Array.from(speeds);
    this.isLive = speeds.map(() => true);
    this.#outstandingMs = new Float64Array(workers);
    this.#queuedMs = new Float64Array(workers);
    this.#queuedRequests = new Int32Array(workers);
    this.#enqueuedMs = new Float64Array(workers);
    this.#lastSequence = new Float64Array(workers * routers).fill(-1);
    this.#running = new Int32Array(workers).fill(NONE);
    this.#runningSinceMs = new Float64Array(workers);
    this.#first = new Int32Array(workers).fill(NONE);
    this.#last = new Int32Array(workers).fill(NONE);
    this.busyMs = new Float64Array(workers);
  }

  dispatched(worker: number, workMs: number): void {
    this.#outstandingMs[worker] = (this.#outstandingMs[worker] ?? 0) + workMs;
  }

  /** Waiting or running. */
  inFlight(worker: number): number {
    return this.#queuedRequests[worker] ?? 0;
  }

  running(worker: number): number {
    return this.#running[worker] ?? NONE;
  }

  enqueuedMs(worker: number): number {
    return this.#enqueuedMs[worker] ?? 0;
  }

  lastSequenceSeen(worker: number, router: number): number {
    return this.#lastSequence[worker * this.#routers + router] ?? -1;
  }

  /** Predicted work that waits or runs, less what is done of it. */
  queuedMs(worker: number, nowMs: number): number {
    const queued = this.#queuedMs[worker] ?? 0;
    const running = this.running(worker);
    if (running === NONE) return 0;
    const doneMs = (nowMs - (this.#runningSinceMs[worker] ?? 0)) * (this.speed[worker] ?? 1);
    return queued - Math.min(doneMs, this.#requests.predictedMs[running] ?? 0);
  }

  /** When it will have done all that was dispatched to it, in ms from now. */
  backlogMs(worker: number, nowMs: number): number {
    const speed = this.speed[worker] ?? 1;
    const outstandingMs = (this.#outstandingMs[worker] ?? 0) / speed;
    const isRunning = this.running(worker) !== NONE;
    return isRunning ? outstandingMs - (nowMs - (this.#runningSinceMs[worker] ?? 0)) : outstandingMs;
  }

  takeIn(request: number, nowMs: number): void {
    const table = this.#requests;
    const worker = table.worker[request] ?? 0;
    const predictedMs = table.predictedMs[request] ?? 0;
    table.takenInMs[request] = nowMs;
    table.beside[request] = this.inFlight(worker);
    table.next[request] = NONE;
    this.#queuedMs[worker] = (this.#queuedMs[worker] ?? 0) + predictedMs;
    this.#queuedRequests[worker] = this.inFlight(worker) + 1;
    this.#enqueuedMs[worker] = (this.#enqueuedMs[worker] ?? 0) + predictedMs;
    this.#lastSequence[worker * this.#routers + (table.router[request] ?? 0)] = table.sequence[request] ?? 0;
    const last = this.#last[worker] ?? NONE;
    if (last === NONE) this.#first[worker] = request;
    else table.next[last] = request;
    this.#last[worker] = request;
  }

  /** Takes the first of the queue to run it; answers how long that will take, or NaN where nothing waits. */
  start(worker: number, nowMs: number): number {
    const request = this.#first[worker] ?? NONE;
    if (request === NONE) return Number.NaN;
    const next = this.#requests.next[request] ?? NONE;
    this.#first[worker] = next;
    if (next === NONE) this.#last[worker] = NONE;
    this.#running[worker] = request;
    this.#runningSinceMs[worker] = nowMs;
    return (this.#requests.workMs[request] ?? 0) / (this.speed[worker] ?? 1);
  }

  /** Ends what runs, and answers which that was. */
  end(worker: number, nowMs: number): number {
    const request = this.running(worker);
    const busyMs = nowMs - (this.#runningSinceMs[worker] ?? 0);
    this.#running[worker] = NONE;
    this.#requests.busyMs[request] = busyMs;
    this.busyMs[worker] = (this.busyMs[worker] ?? 0) + busyMs;
    this.#forget(worker, request);
    return request;
  }

  /** Empties the queue of a worker that died; `lose` gets each request. */
  loseAll(worker: number, lose: (request: number) => void): void {
    const running = this.running(worker);
    if (running !== NONE) lose(running);
    this.#running[worker] = NONE;
    let request = this.#first[worker] ?? NONE;
    while (request !== NONE) {
      const next = this.#requests.next[request] ?? NONE;
      lose(request);
      request = next;
    }
    this.#first[worker] = NONE;
    this.#last[worker] = NONE;
  }

  #forget(worker: number, request: number): void {
    const { predictedMs, workMs } = this.#requests;
    const left = this.inFlight(worker) - 1;
    this.#queuedRequests[worker] = left;
    // Sums of many differences drift: an empty queue is 0 exactly.
    this.#queuedMs[worker] = left === 0 ? 0 : (this.#queuedMs[worker] ?? 0) - (predictedMs[request] ?? 0);
    this.#outstandingMs[worker] = Math.max(0, (this.#outstandingMs[worker] ?? 0) - (workMs[request] ?? 0));
  }
}
