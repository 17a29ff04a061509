import { OwnDispatches } from '../../core/routing/own-dispatches.ts';
import type { WorkerSnapshot } from '../../core/routing/worker-snapshot.ts';
import type { Chooser, Seat } from '../routing/chooser.ts';
import { liveSpeeds } from './random-choice.ts';
import { leastPlace } from './sample.ts';

interface Known {
  readonly own: OwnDispatches;
  waitMs: number;
  atMs: number;
  unseenMs: number;
  lastSequenceSeen: number;
}

/**
 * The least expected wait + service from the newest snapshot, drained since, and the own dispatches that it did not contain: shortest expected delay
 * (Winston 1977; Banawan and Zahorjan, "Load Sharing in Heterogeneous Queueing Systems", INFOCOM 1989) of one router that does not think of the others.
 */
export function shortestExpectedWait(seat: Seat): Chooser {
  const workers = seat.speeds.map(
    (): Known => ({ own: new OwnDispatches(), waitMs: 0, atMs: 0, unseenMs: 0, lastSequenceSeen: -1 }),
  );
  let speeds: readonly number[] = seat.speeds;
  const observe = (worker: number, snapshot: WorkerSnapshot, nowMs: number): void => {
    const known = workers[worker];
    if (known === undefined) return;
    known.waitMs = snapshot.queuedMs / (speeds[worker] ?? 1);
    known.atMs = nowMs;
    known.lastSequenceSeen = snapshot.lastSequenceSeen;
    known.unseenMs = known.own.workAfter(snapshot.lastSequenceSeen);
  };
  return {
    choose(predictedMs, nowMs) {
      return leastPlace(
        workers.length,
        (worker) => {
          const known = workers[worker];
          if (known === undefined) return Number.POSITIVE_INFINITY;
          const drainedMs = Math.max(0, known.waitMs - (nowMs - known.atMs));
          return drainedMs + (known.unseenMs + predictedMs) / (speeds[worker] ?? 1);
        },
        seat.random,
      );
    },
    dispatched(worker, sequence, predictedMs, nowMs) {
      const known = workers[worker];
      if (known === undefined) return;
      known.own.push(sequence, predictedMs, nowMs, nowMs);
      known.unseenMs += predictedMs;
    },
    acknowledged(worker, end, snapshot, nowMs) {
      workers[worker]?.own.end(end.sequence);
      observe(worker, snapshot, nowMs);
    },
    heard: observe,
    membersChanged(members) {
      speeds = liveSpeeds(seat, members);
    },
  };
}
