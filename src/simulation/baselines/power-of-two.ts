import { OwnDispatches } from '../../core/routing/own-dispatches.ts';
import type { Chooser, CreateChooser, Seat } from '../routing/chooser.ts';
import { liveSpeeds } from './random-choice.ts';
import { weightedPlace } from './sample.ts';

/** What tells how loaded a sampled worker is. */
export type LoadSignal =
  /** Its last heartbeat, and the own dispatches that it did not contain. */
  | 'status and own dispatches'
  /** The own unacknowledged requests alone, as Envoy's LEAST_REQUEST does. */
  | 'own unacknowledged';

/**
 * Of two workers drawn in proportion to their declared speeds the less loaded per speed (Mitzenmacher, "The Power of Two Choices in Randomized Load
 * Balancing", IEEE TPDS 2001; with weights as Envoy's LEAST_REQUEST). Both draws may fall on the same worker, as in the analysis.
 */
export function powerOfTwo(signal: LoadSignal): CreateChooser {
  return (seat: Seat): Chooser => {
    const own = seat.speeds.map(() => new OwnDispatches());
    const reported = seat.speeds.map(() => 0);
    const seen = seat.speeds.map(() => -1);
    let speeds: readonly number[] = seat.speeds;
    const loadOf = (worker: number): number => {
      const dispatches = own[worker];
      if (dispatches === undefined) return Number.POSITIVE_INFINITY;
      const requests =
        signal === 'own unacknowledged'
          ? dispatches.count
          : (reported[worker] ?? 0) + dispatches.countAfter(seen[worker] ?? -1);
      return (requests + 1) / (speeds[worker] ?? 1);
    };
    return {
      choose() {
        const one = weightedPlace(speeds, seat.random);
        const other = weightedPlace(speeds, seat.random);
        const [ofOne, ofOther] = [loadOf(one), loadOf(other)];
        if (ofOne === ofOther) return seat.random.next() < 0.5 ? one : other;
        return ofOne < ofOther ? one : other;
      },
      dispatched(worker, sequence, predictedMs, nowMs) {
        own[worker]?.push(sequence, predictedMs, nowMs, nowMs);
      },
      acknowledged(worker, end) {
        own[worker]?.end(end.sequence);
      },
      heard(worker, snapshot) {
        reported[worker] = snapshot.queuedRequests;
        seen[worker] = snapshot.lastSequenceSeen;
      },
      membersChanged(members) {
        speeds = liveSpeeds(seat, members);
      },
    };
  };
}
