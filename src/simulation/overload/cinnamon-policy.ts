import { Fifo } from '../../core/fifo.ts';
import { Heap } from '../../core/overload/heap.ts';
import { CinnamonRejector, CinnamonTuner } from '../baselines/cinnamon.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

const COHORTS = 128;

interface Waiting {
  attempt: Attempt;
  priority: number;
}

/** Cinnamon before a pool: a threshold of priority, a queue by priority, and a limit of what is at the servers at once. Expired work is dropped in the queue. */
export const cinnamonPolicy: CreatePolicy = ({ servers, onDrop }) => {
  const rejector = new CinnamonRejector();
  const tuner = new CinnamonTuner(servers);
  const queue = new Heap<Waiting>((a, b) =>
    a.priority === b.priority ? a.attempt.arrivedMs < b.attempt.arrivedMs : a.priority < b.priority,
  );
  const atServers = new Fifo<Waiting>();
  const leftMs = new Map<Attempt, number>();
  let inflight = 0;
  let [entered, left] = [0, 0];

  const release = (nowMs: number): void => {
    while (inflight < Math.floor(tuner.limit)) {
      const waiting = queue.pop();
      if (waiting === undefined) return;
      if (waiting.attempt.deadlineMs <= nowMs) {
        onDrop(waiting.attempt);
        continue;
      }
      inflight += 1;
      left += 1;
      leftMs.set(waiting.attempt, nowMs);
      atServers.push(waiting);
    }
  };

  return {
    tickMs: 500,
    arrive: (attempt, nowMs) => {
      const { densityTier, user } = attempt.request;
      const priority = densityTier * COHORTS + (user % COHORTS);
      if (!rejector.admits(priority)) return false;
      entered += 1;
      queue.push({ attempt, priority });
      release(nowMs);
      return true;
    },
    next: () => {
      const work = atServers.shift()?.attempt;
      return work === undefined ? undefined : { work, extras: work.extras.length };
    },
    complete: ({ attempt }, nowMs) => {
      tuner.completed(nowMs - (leftMs.get(attempt) ?? nowMs), inflight, nowMs);
      leftMs.delete(attempt);
      inflight -= 1;
      release(nowMs);
    },
    tick: () => {
      rejector.update({
        in: entered,
        out: left,
        freeInflight: Math.max(0, Math.floor(tuner.limit) - inflight),
      });
      entered = left = 0;
    },
    limit: () => tuner.limit,
  };
};
