/** What a worker says of its queue, to one router. Work is what was predicted of it, in ms of a worker of speed 1. */
export interface WorkerSnapshot {
  /** When it was so, on the router's clock. */
  readonly takenAtMs: number;
  /** Work that waits or runs, less what is done of it. */
  readonly queuedMs: number;
  readonly queuedRequests: number;
  /** The last of this router's dispatches that the worker has taken in; -1 before the first. */
  readonly lastSequenceSeen: number;
  /** All work that it took in since it began, from every router. */
  readonly enqueuedMs: number;
}

/** A dispatch that a worker has ended, as its acknowledgement tells it. */
export interface DispatchEnd {
  readonly sequence: number;
  /** The worker's time from taking it in to its end, ms. */
  readonly sojournMs: number;
  /** How long the worker computed it, ms. */
  readonly busyMs: number;
}
