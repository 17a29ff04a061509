import type { Chooser, Seat } from '../routing/chooser.ts';
import { liveSpeeds } from './random-choice.ts';

/** Turns per worker, at most, before the first request: more than one round of speeds from 1 to 8. */
const TURNS_FIRST = 8;

/**
 * Round robin weighted by declared speed, in nginx's smooth order (ngx_http_upstream_round_robin.c, 2012): each worker gains its weight, the one
 * that has most is chosen and pays the total. Each router turns by itself, from a random place in the turn.
 */
export function weightedRoundRobin(seat: Seat): Chooser {
  let weights = [...seat.speeds];
  let total = sum(weights);
  const current = weights.map(() => 0);
  const turn = (): number => {
    let best = 0;
    for (const [worker, weight] of weights.entries()) {
      current[worker] = (current[worker] ?? 0) + weight;
      const isBetter = (current[worker] ?? 0) > (current[best] ?? 0) || weights[best] === 0;
      if (weight > 0 && isBetter) best = worker;
    }
    current[best] = (current[best] ?? 0) - total;
    return best;
  };
  for (let turns = seat.random.below(TURNS_FIRST * weights.length); turns > 0; turns--) turn();
  return {
    choose: turn,
    membersChanged(members) {
      weights = liveSpeeds(seat, members);
      total = sum(weights);
    },
  };
}

function sum(weights: readonly number[]): number {
  return weights.reduce((all, weight) => all + weight, 0);
}
