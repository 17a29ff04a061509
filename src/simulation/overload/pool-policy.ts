import type { Started } from '../../core/overload/overload-queue.ts';
import type { Attempt } from './pool-request.ts';

/** What stands between the clients and the servers of a pool: it refuses, keeps the queue, and says what a free server runs next. */
export interface PoolPolicy {
  /** How often `tick` is due, ms. */
  readonly tickMs: number;
  /** False: refused, and the client is told at once. */
  arrive(attempt: Attempt, nowMs: number): boolean;
  /** What a free server runs now; undefined where nothing waits for it. */
  next(nowMs: number): Started<Attempt> | undefined;
  complete(completion: Completion, nowMs: number): void;
  tick(nowMs: number): void;
  /** What it lets in, in units of its own: what must not drift while the load stays the same. */
  limit(): number;
}

export interface Completion {
  attempt: Attempt;
  startedMs: number;
  /** Predicted service time of what ran, ms. */
  costMs: number;
  /** Real one, ms. */
  busyMs: number;
}

/** Told of what a policy dropped after it had let it in; the client hears of it at once. */
export type OnDrop = (attempt: Attempt) => void;

export type CreatePolicy = (pool: { servers: number; slaMs: number; onDrop: OnDrop }) => PoolPolicy;
