import type { Chooser, Members, Seat } from '../routing/chooser.ts';
import { weightedPlace } from './sample.ts';

/** A worker at random, in proportion to its declared speed: each worker is a queue of its own, M/G/1 under Poisson arrivals. */
export function randomChoice(seat: Seat): Chooser {
  let weights = seat.speeds;
  return {
    choose: () => weightedPlace(weights, seat.random),
    membersChanged: (members) => {
      weights = liveSpeeds(seat, members);
    },
  };
}

/** The declared speeds, 0 for a worker that is not there. */
export function liveSpeeds(seat: Seat, { isLive }: Members): number[] {
  return seat.speeds.map((speed, worker) => (isLive[worker] === true ? speed : 0));
}
