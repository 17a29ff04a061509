import { Fifo } from '../../core/fifo.ts';
import { gieSaturation } from '../baselines/gie-saturation.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

/** How old the pool's metrics get. */
const REFRESH_MS = 50;
/** Tiers of density from this one on have a negative priority: half of the requests. */
const SHEDDABLE_FROM = 5;

/** The inference extension's admission before a pool. Recommendation models hold no cache memory for a request, so only queues saturate it. */
export const giePolicy: CreatePolicy = ({ servers }) => {
  const queue = new Fifo<Attempt>();
  let saturation = 0;
  return {
    tickMs: REFRESH_MS,
    arrive: (attempt) => {
      if (saturation >= 1 && attempt.request.densityTier >= SHEDDABLE_FROM) return false;
      queue.push(attempt);
      return true;
    },
    next: () => {
      const work = queue.shift();
      return work === undefined ? undefined : { work, extras: work.extras.length };
    },
    complete: () => {},
    tick: () => {
      saturation = gieSaturation([{ queued: queue.length / servers, memory: 0 }]);
    },
    limit: () => saturation,
  };
};
