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

/** Requests that wait for a credit or a worker, earliest deadline first. */
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
    queue.push(workOf(job.deadlineMs, waiting));
    this.#checkLater();
  }

  /**
   * Gives the most urgent request of all queues to `attempt`, and so on; a queue of which one has to go on waiting is passed over. Queues want the
   * same slots: were one emptied before the next has its turn, the requests of one leaf, or of one arm of a rollout, would be late for the other's.
   */
  retry(attempt: (waiting: Waiting) => boolean): void {
    const turns = new WorkQueue<string>();
    for (const [key, queue] of this.#queues) takeTurn(turns, key, queue);
    for (let turn = turns.pop(); turn !== undefined; turn = turns.pop()) {
      const key = turn.payload;
      const queue = this.#queues.get(key);
      const next = queue?.pop();
      if (queue === undefined || next === undefined) continue;
      if (attempt(next.payload)) takeTurn(turns, key, queue);
      else queue.push(next);
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

/** When the queue's most urgent request is due, that is the queue's turn. */
function takeTurn(turns: WorkQueue<string>, key: string, queue: WorkQueue<Waiting>): void {
  const first = queue.peek();
  if (first !== undefined) turns.push(workOf(first.deadlineMs, key));
}

function workOf<T>(deadlineMs: number, payload: T): Work<T> {
  return { deadlineMs, optional: false, batchKey: '', candidates: 0, predictedMs: 0, payload };
}
