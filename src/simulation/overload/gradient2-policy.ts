import { Fifo } from '../../core/fifo.ts';
import { Gradient2 } from '../baselines/gradient2.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

/** Gradient2 before a pool: first come first served, refused above its limit. */
export const gradient2Policy: CreatePolicy = () => {
  const gradient = new Gradient2();
  const queue = new Fifo<Attempt>();
  /** Its limiter notes how many were under way when a request came, not when it ended. */
  const inflightAt = new WeakMap<Attempt, number>();
  let inflight = 0;
  return {
    tickMs: 1_000,
    arrive: (attempt) => {
      if (inflight >= Math.floor(gradient.limit)) return false;
      inflight += 1;
      inflightAt.set(attempt, inflight);
      queue.push(attempt);
      return true;
    },
    next: () => {
      const work = queue.shift();
      return work === undefined ? undefined : { work, extras: work.extras.length };
    },
    complete: ({ attempt }, nowMs) => {
      gradient.completed(nowMs - attempt.arrivedMs, inflightAt.get(attempt) ?? inflight);
      inflight -= 1;
    },
    tick: () => {},
    limit: () => gradient.limit,
  };
};
