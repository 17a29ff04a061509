import { judge, type Verdict } from './evidence.ts';
import { guardrailReasons } from './guardrails.ts';
import { metricReasons, missingMetrics } from './metric-rules.ts';
import type { HoldReason } from './rollout-event.ts';
import { type RolloutState, stageOf } from './rollout-state.ts';
import { missingScores, scoreReasons } from './score-rules.ts';
import { shadowReasons } from './shadow-rules.ts';

/** What the comparison of the arms says; undefined in shadow, where there is nothing to compare. */
export function verdictOf({ evidence }: RolloutState): Verdict | undefined {
  return evidence === undefined ? undefined : judge(evidence);
}

/** Why the rollout must not go on, as things are; what a person held stays until a person ends it. */
export function holdReasons(rollout: RolloutState): HoldReason[] {
  const verdict = verdictOf(rollout);
  return [
    ...(rollout.hold?.reasons.filter(({ code }) => code === 'person') ?? []),
    ...(stageOf(rollout).name === 'shadow' ? shadowReasons(rollout) : []),
    ...leftOutReasons(rollout),
    ...(verdict?.kind === 'hold' ? [{ code: 'statistics', text: verdict.reason } as const] : []),
    ...(verdict?.kind === 'roll-back' ? [{ code: 'harm', text: verdict.reason } as const] : []),
    ...guardrailReasons(rollout),
    ...scoreReasons(rollout),
    ...metricReasons(rollout),
  ];
}

/** Judged by a part of what was seen, a stage could pass for what was left out. */
function leftOutReasons({ lastLook }: RolloutState): HoldReason[] {
  return lastLook?.leftOut === undefined ? [] : [{ code: 'statistics', text: lastLook.leftOut }];
}

/** What the stage still lacks; empty where it passed. Nothing passes for being inconclusive. */
export function missingOf(rollout: RolloutState): string[] {
  const { name, dwellMs } = stageOf(rollout);
  const missing = missingMetrics(rollout);
  if (rollout.observedMs < dwellMs)
    missing.push(
      `${secondsLeft(dwellMs - rollout.observedMs)} s of the stage's ${secondsLeft(dwellMs)} s are still to be observed`,
    );
  if (name === 'shadow') {
    const { shadowRequestsMin } = rollout.terms.limits;
    if (rollout.shadow.requests < shadowRequestsMin)
      missing.push(`${rollout.shadow.requests} of ${shadowRequestsMin} requests were decided in shadow`);
    return missing;
  }
  const verdict = verdictOf(rollout);
  if (verdict === undefined) missing.push('there is no evidence');
  else if (verdict.kind !== 'promotable') missing.push(verdict.reason);
  return [...missing, ...missingScores(rollout)];
}

function secondsLeft(ms: number): number {
  return Math.ceil(ms / 1_000);
}
