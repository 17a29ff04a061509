const FIRST_CAPACITY = 1_024;
/** No request. */
export const NONE = -1;

/**
 * Requests that are under way, by number, field by field: a request is an integer, which is given anew once its acknowledgement is read. It
 * holds what its acknowledgement will say as well.
 */
export class RequestTable {
  router = new Int32Array(FIRST_CAPACITY);
  worker = new Int32Array(FIRST_CAPACITY);
  sequence = new Float64Array(FIRST_CAPACITY);
  workMs = new Float64Array(FIRST_CAPACITY);
  predictedMs = new Float64Array(FIRST_CAPACITY);
  arrivedMs = new Float64Array(FIRST_CAPACITY);
  takenInMs = new Float64Array(FIRST_CAPACITY);
  /** With how many others the worker had taken it in. */
  beside = new Int32Array(FIRST_CAPACITY);
  busyMs = new Float64Array(FIRST_CAPACITY);
  endedMs = new Float64Array(FIRST_CAPACITY);
  queuedMs = new Float64Array(FIRST_CAPACITY);
  queuedRequests = new Int32Array(FIRST_CAPACITY);
  lastSequenceSeen = new Float64Array(FIRST_CAPACITY);
  enqueuedMs = new Float64Array(FIRST_CAPACITY);
  /** The one behind it in its worker's queue, or the next free number. */
  next = new Int32Array(FIRST_CAPACITY);
  #free = NONE;
  #used = 0;
  #count = 0;

  /** Under way. */
  get count(): number {
    return this.#count;
  }

  take(): number {
    this.#count += 1;
    const free = this.#free;
    if (free !== NONE) {
      this.#free = this.next[free] ?? NONE;
      return free;
    }
    if (this.#used === this.router.length) this.#grow();
    return this.#used++;
  }

  release(request: number): void {
    this.#count -= 1;
    this.next[request] = this.#free;
    this.#free = request;
  }

  #grow(): void {
    const capacity = this.router.length * 2;
    this.router = wider(this.router, new Int32Array(capacity));
    this.worker = wider(this.worker, new Int32Array(capacity));
    this.sequence = wider(this.sequence, new Float64Array(capacity));
    this.workMs = wider(this.workMs, new Float64Array(capacity));
    this.predictedMs = wider(this.predictedMs, new Float64Array(capacity));
    this.arrivedMs = wider(this.arrivedMs, new Float64Array(capacity));
    this.takenInMs = wider(this.takenInMs, new Float64Array(capacity));
    this.beside = wider(this.beside, new Int32Array(capacity));
    this.busyMs = wider(this.busyMs, new Float64Array(capacity));
    this.endedMs = wider(this.endedMs, new Float64Array(capacity));
    this.queuedMs = wider(this.queuedMs, new Float64Array(capacity));
    this.queuedRequests = wider(this.queuedRequests, new Int32Array(capacity));
    this.lastSequenceSeen = wider(this.lastSequenceSeen, new Float64Array(capacity));
    this.enqueuedMs = wider(this.enqueuedMs, new Float64Array(capacity));
    this.next = wider(this.next, new Int32Array(capacity));
  }
}

function wider<A extends Int32Array | Float64Array>(from: A, to: A): A {
  to.set(from);
  return to;
}
