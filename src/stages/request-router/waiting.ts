import { type Work, WorkQueue } from '../../core/batching/work-queue.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { Decided } from './deciding-policy.ts';
import type { RouteJob } from './route-job.ts';

/** A request that found no credit or no worker, with the decision that it waits to be carried out. */
export interface Waiting {
  readonly job: RouteJob;
  readonly decided: Decided;
}

/** How often waiting requests are looked at when nothing else wakes them. */
const CHECK_MS = 5;

/** Requests that wait for a credit or a worker, earliest deadline first among those that wait for the same. */
export class WaitingRequests {
  readonly #clock: Clock;
  readonly #onCheck: () => void;
  /** By arm, leaf and model: for what is in one queue there is a place for all or for none. */
  readonly #queues = new Map<string, WorkQueue<Waiting>>();
  #cancelCheck: Cancel | undefined;

  /** @param onCheck called every few milliseconds while anybody waits */
  constructor(clock: Clock, onCheck: () => void) {
    this.#clock = clock;
    this.#onCheck = onCheck;
  }

  get count(): number {
    let count = 0;
    for (const queue of this.#queues.values()) count += queue.length;
    return count;
  }

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  add(waiting: Waiting): void {
    const { job, decided } = waiting;
    const key = `${decided.arm} ${decided.leaf} ${job.request.model}@${job.request.modelVersion ?? ''}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new WorkQueue<Waiting>();
      this.#queues.set(key, queue);
    }
    queue.push(workOf(waiting));
    this.#checkLater();
  }

  /** Gives each queue's most urgent request to `attempt`, the next one where that went, until one has to go on waiting. */
  retry(attempt: (waiting: Waiting) => boolean): void {
    for (const [key, queue] of this.#queues) {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (attempt(next.payload)) continue;
        queue.push(next);
        break;
      }
      if (queue.length === 0) this.#queues.delete(key);
    }
  }

  take(match: (waiting: Waiting) => boolean): RouteJob[] {
    const jobs: RouteJob[] = [];
    for (const [key, queue] of this.#queues) {
      for (const work of queue.remove((candidate) => match(candidate.payload))) jobs.push(work.payload.job);
      if (queue.length === 0) this.#queues.delete(key);
    }
    return jobs;
  }

  close(): void {
    this.#cancelCheck?.();
  }

  #checkLater(): void {
    this.#cancelCheck ??= this.#clock.after(CHECK_MS, () => {
      this.#cancelCheck = undefined;
      this.#onCheck();
      if (!this.isEmpty) this.#checkLater();
    });
  }
}

function workOf(waiting: Waiting): Work<Waiting> {
  return {
    deadlineMs: waiting.job.deadlineMs,
    optional: false,
    batchKey: '',
    candidates: 0,
    predictedMs: 0,
    payload: waiting,
  };
}
