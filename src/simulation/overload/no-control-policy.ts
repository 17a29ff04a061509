import { Fifo } from '../../core/fifo.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

/** All is let in, first come first served, however late. */
export const noControl: CreatePolicy = () => {
  const queue = new Fifo<Attempt>();
  return {
    tickMs: 1_000,
    arrive: (attempt) => {
      queue.push(attempt);
      return true;
    },
    next: () => {
      const work = queue.shift();
      return work === undefined ? undefined : { work, extras: work.extras.length };
    },
    complete: () => {},
    tick: () => {},
    limit: () => Number.POSITIVE_INFINITY,
  };
};
