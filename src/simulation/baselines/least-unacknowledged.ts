import type { Chooser, Seat } from '../routing/chooser.ts';
import { liveSpeeds } from './random-choice.ts';
import { leastPlace } from './sample.ts';

/**
 * The least own unacknowledged requests per declared speed, the new one counted in: what a proxy without reports from its servers does (nginx's
 * weighted `least_conn`, HAProxy's `leastconn`). It knows at once what it sent, and nothing of what other routers sent.
 */
export function leastUnacknowledged(seat: Seat): Chooser {
  const open = seat.speeds.map(() => 0);
  let speeds: readonly number[] = seat.speeds;
  return {
    choose: () =>
      leastPlace(speeds.length, (worker) => ((open[worker] ?? 0) + 1) / (speeds[worker] ?? 1), seat.random),
    dispatched(worker) {
      open[worker] = (open[worker] ?? 0) + 1;
    },
    acknowledged(worker) {
      open[worker] = (open[worker] ?? 0) - 1;
    },
    membersChanged(members) {
      speeds = liveSpeeds(seat, members);
    },
  };
}
