import { Fifo } from '../../core/fifo.ts';
import { type DcafAction, dcafChoice, dcafLambda } from '../baselines/dcaf.ts';
import type { CreatePolicy } from './pool-policy.ts';
import { type Attempt, costOf, worthOf } from './pool-request.ts';

/** λ is solved this often, on what arrived since. */
const PERIOD_MS = 1_000;

/** DCAF before a pool: none of a request, its baseline, or so many steps of extras, by one price for the capacity that it was told; first come first served. */
export const dcafPolicy: CreatePolicy = ({ servers }) => {
  const queue = new Fifo<{ work: Attempt; extras: number }>();
  let log: DcafAction[][] = [];
  let lambda = 0;
  return {
    tickMs: PERIOD_MS,
    arrive: (attempt) => {
      const actions = Array.from({ length: attempt.extras.length + 1 }, (_, steps) => ({
        cost: costOf(attempt, steps),
        gain: worthOf(attempt, steps),
      }));
      log.push(actions);
      const extras = dcafChoice(actions, lambda);
      if (extras === undefined) return false;
      queue.push({ work: attempt, extras });
      return true;
    },
    next: () => queue.shift(),
    complete: () => {},
    tick: () => {
      lambda = dcafLambda(log, servers * PERIOD_MS);
      log = [];
    },
    limit: () => lambda,
  };
};
