import type { Chooser, Seat } from '../routing/chooser.ts';
import { leastPlace } from './sample.ts';

/**
 * The worker that will end the request first, by the real work and speeds of everything, dispatches of all routers that are still under way
 * included. No router can know that; it is the yardstick, though not an optimum: it looks at one request at a time.
 */
export function omniscientGreedy(seat: Seat): Chooser {
  const { truth } = seat;
  let isLive: readonly boolean[] = seat.speeds.map(() => true);
  return {
    choose() {
      const workMs = truth.workMs();
      const endsMs = (worker: number): number =>
        isLive[worker] === true
          ? truth.backlogMs(worker) + workMs / truth.speed(worker)
          : Number.POSITIVE_INFINITY;
      return leastPlace(seat.speeds.length, endsMs, seat.random);
    },
    membersChanged(members) {
      isLive = members.isLive;
    },
  };
}
