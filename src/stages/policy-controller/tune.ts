import { type ControllerEvent, TUNING } from '../../core/control/controller-event.ts';
import { MISFIT } from '../../core/control/json-shape.ts';
import { parsePolicy } from '../../core/policy/parse.ts';
import { type ScopeState, stageOf } from '../../core/rollout/rollout-state.ts';
import { decideTuning } from '../../core/tuning/decide-tuning.ts';
import { tuningObservationShape } from '../../core/tuning/event-shape.ts';
import type { TuningStepped } from '../../core/tuning/tuning-event.ts';
import type { RolloutPhase } from '../../core/tuning/tuning-observation.ts';
import type { TuningTerms } from '../../core/tuning/tuning-terms.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type ChildDeps, childPolicy, nextVersion } from './child-policy.ts';
import type { Tuner } from './tuner.ts';

export interface TuneDeps extends ChildDeps {
  tuner: Pick<Tuner, 'observe'>;
  terms: TuningTerms;
  telemetry: Telemetry;
}

/**
 * What the tuning makes of a live policy now: a look, what follows from it, and the child of a step. Nothing before the period is over, or where
 * the policy has no constant to tune.
 *
 * @param text of the live policy
 * @param nowMs log time
 */
export function tune(
  name: string,
  scope: ScopeState,
  text: string,
  nowMs: number,
  deps: TuneDeps,
): ControllerEvent[] {
  const { tuning, epoch, published } = scope;
  if (tuning.last !== undefined && nowMs < tuning.last.atMs + deps.terms.periodMs) return [];
  const document = parsePolicy(text);
  if (document.tunables.length === 0) return [];
  const tuned = { document, epoch, nextVersion: nextVersion(published), rollout: phaseOf(scope) };
  const seen = deps.tuner.observe(tuned, tuning, deps.terms.periodMs, nowMs);
  if (seen === undefined) return [];
  const observation = tuningObservationShape(seen);
  if (observation === MISFIT) {
    deps.telemetry.logger.error({ scope: name }, 'an observation for tuning is impossible; it is left out');
    return [];
  }
  const cause = { commandId: '', scope: name, actor: TUNING };
  return decideTuning(tuning, observation, deps.terms).flatMap((event) => [
    { ...event, ...cause },
    ...(event.type === 'tuning-stepped' ? childEvents(name, scope, text, event, deps) : []),
  ]);
}

/** A child that is refused is not published: the next look shows that the step did not come about. */
function childEvents(
  name: string,
  { live, epoch }: ScopeState,
  text: string,
  step: TuningStepped,
  deps: TuneDeps,
): ControllerEvent[] {
  if (live === undefined) return [];
  try {
    const child = childPolicy(text, live, step, deps);
    const { to: value, reason, atMs } = step;
    return [
      {
        type: 'policy-tuned',
        commandId: '',
        scope: name,
        actor: TUNING,
        ...child,
        name: step.name,
        value,
        reason,
        atMs,
        epoch: epoch + 1,
      },
    ];
  } catch (error) {
    deps.telemetry.logger.warn({ scope: name, error: String(error) }, 'a step of the tuning was refused');
    return [];
  }
}

function phaseOf({ rollout }: ScopeState): RolloutPhase {
  return rollout === undefined ? 'none' : stageOf(rollout).name;
}
