import { Fifo } from '../../core/fifo.ts';
import { Dagor } from '../baselines/dagor.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

const LEVELS = { business: 10, user: 128 };

/** DAGOR before a pool: first come first served behind its admission. Expired tasks are dropped, as its time-outs have it. */
export const dagorPolicy: CreatePolicy = ({ onDrop }) => {
  const dagor = new Dagor(LEVELS);
  const queue = new Fifo<Attempt>();
  return {
    tickMs: 1_000,
    arrive: (attempt, nowMs) => {
      const { densityTier, user } = attempt.request;
      const isIn = dagor.admits(densityTier, user % LEVELS.user, nowMs);
      if (isIn) queue.push(attempt);
      return isIn;
    },
    next: (nowMs) => {
      for (let work = queue.shift(); work !== undefined; work = queue.shift()) {
        dagor.started(nowMs - work.arrivedMs);
        if (work.deadlineMs > nowMs) return { work, extras: work.extras.length };
        onDrop(work);
      }
      return undefined;
    },
    complete: () => {},
    tick: () => {},
    limit: () => dagor.level + 1,
  };
};
