import type { PublishedPolicy } from '../control/published-policy.ts';
import { changesFingerprint } from './evolve-rollout.ts';
import { metricRollback } from './metric-rules.ts';
import { holdReasons, missingOf, verdictOf } from './readiness.ts';
import { AUTOMATIC, type HoldReason, type RolloutEvent, type RolloutHappening } from './rollout-event.ts';
import type { RolloutState, ScopeState } from './rollout-state.ts';
import type { RolloutTerms } from './rollout-terms.ts';

/**
 * The next thing that follows from the state by itself, without a command; undefined where nothing does. Once its event is applied, what follows
 * from that is asked for again. So a controller that died between an observation and its consequence loses nothing: the next one concludes the same.
 */
export function conclude(name: string, scope: ScopeState): RolloutEvent | undefined {
  const happening = happeningOf(scope);
  return happening === undefined ? undefined : { ...happening, commandId: '', scope: name, actor: AUTOMATIC };
}

function happeningOf(scope: ScopeState): RolloutHappening | undefined {
  const { rollout, toStart } = scope;
  if (rollout === undefined) {
    return toStart === undefined ? undefined : startOf(scope, toStart.policy, toStart.terms, toStart.atMs);
  }
  const { lastLook, terms, hold } = rollout;
  if (lastLook === undefined) return undefined;
  const { atMs } = lastLook;
  const epoch = scope.epoch + 1;
  const rolledBack = (reason: string): RolloutHappening => ({
    type: 'rollout-rolled-back',
    reason,
    atMs,
    epoch,
  });
  const verdict = verdictOf(rollout);
  if (verdict?.kind === 'roll-back' && terms.autoRollback) return rolledBack(verdict.reason);
  const broken = metricRollback(rollout);
  if (broken !== undefined && terms.autoRollback) return rolledBack(broken);
  if (hold !== undefined && atMs - hold.sinceMs >= terms.limits.holdMsMax) {
    return rolledBack(`on hold for too long: ${hold.reasons.map(({ text }) => text).join('; ')}`);
  }
  // After what ends it: a canary that drives its workers away must not begin anew each time.
  if (changesFingerprint(rollout, lastLook)) {
    return { type: 'stage-restarted', fingerprint: lastLook.fingerprint, atMs, epoch };
  }
  return holdOrGoOn(scope, rollout, atMs);
}

function holdOrGoOn(scope: ScopeState, rollout: RolloutState, atMs: number): RolloutHappening | undefined {
  const reasons = holdReasons(rollout);
  if (reasons.length > 0) {
    return isSame(reasons, rollout.hold?.reasons) ? undefined : { type: 'rollout-held', reasons, atMs };
  }
  if (rollout.hold !== undefined) return { type: 'rollout-resumed', waivedLeaves: [], atMs };
  if (!rollout.terms.autoPromote || missingOf(rollout).length > 0) return undefined;
  const to = nextStage(rollout);
  return { type: 'rollout-advanced', to, overridden: [], atMs, epoch: scope.epoch + 1 };
}

/** A reason whose figures alone changed is the same. */
function isSame(reasons: readonly HoldReason[], others: readonly HoldReason[] | undefined): boolean {
  const codes = (list: readonly HoldReason[]): string => list.map(({ code }) => code).join();
  return others !== undefined && codes(reasons) === codes(others);
}

export function nextStage({ stage, terms }: RolloutState): number | 'live' {
  return stage + 1 < terms.stages.length ? stage + 1 : 'live';
}

/** The salt is of this rollout alone: the next one draws other units, even of the same version. */
export function startOf(
  scope: ScopeState,
  candidate: PublishedPolicy,
  terms: RolloutTerms,
  atMs: number,
): RolloutHappening {
  const epoch = scope.epoch + 1;
  return { type: 'rollout-started', candidate, terms, salt: `${candidate.digest}@${epoch}`, atMs, epoch };
}
