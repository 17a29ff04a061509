import type { Chooser, Seat } from '../routing/chooser.ts';
import { liveSpeeds } from './random-choice.ts';
import { leastPlace } from './sample.ts';

/**
 * The least requests in flight per speed, by each worker's last heartbeat and nothing else. All routers hear the same and run to the same worker until
 * the next heartbeat: the herd of stale information (Mitzenmacher, "How Useful Is Old Information?", IEEE TPDS 2000).
 */
export function leastLoaded(seat: Seat): Chooser {
  const inFlight = seat.speeds.map(() => 0);
  let speeds: readonly number[] = seat.speeds;
  return {
    choose: () =>
      leastPlace(speeds.length, (worker) => (inFlight[worker] ?? 0) / (speeds[worker] ?? 1), seat.random),
    heard(worker, snapshot) {
      inFlight[worker] = snapshot.queuedRequests;
    },
    membersChanged(members) {
      speeds = liveSpeeds(seat, members);
    },
  };
}
