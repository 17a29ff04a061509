import { RouterScore, SCORE_RULES, type ScoreRules } from '../../core/routing/router-score.ts';
import type { Chooser, CreateChooser, Seat } from '../routing/chooser.ts';

/** The score of `core/routing`, as live routers compute it. */
export function routerScore(rules: ScoreRules = SCORE_RULES): CreateChooser {
  return (seat: Seat): Chooser => {
    const score = new RouterScore(seat.router, seat.speeds, rules);
    return {
      choose: (predictedMs, nowMs) => score.choose(predictedMs, nowMs, seat.random.next) ?? 0,
      dispatched: (worker, sequence, predictedMs, nowMs) =>
        score.dispatched(worker, sequence, predictedMs, nowMs),
      acknowledged: (worker, end, snapshot, nowMs) => score.acknowledged(worker, end, snapshot, nowMs),
      heard: (worker, snapshot) => score.heard(worker, snapshot),
      membersChanged: ({ isLive, routers }) => score.membersChanged(isLive, routers),
    };
  };
}
