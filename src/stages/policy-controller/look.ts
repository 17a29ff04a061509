import type { Look } from '../../core/control/controller-command.ts';
import { MISFIT } from '../../core/control/json-shape.ts';
import type { Observation } from '../../core/rollout/observation.ts';
import { observationShape, silentWindow } from '../../core/rollout/observation-shape.ts';
import type { RolloutState, ScopeState } from '../../core/rollout/rollout-state.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { fitLook } from './fit-look.ts';
import type { FleetVersions } from './fleet-versions.ts';
import type { MetricPoller } from './metric-poller.ts';
import type { PolicyTexts } from './policy-texts.ts';
import type { RolloutObserver } from './rollout-observer.ts';

/** An observer that is silent for so many looks has nothing to say: that counts as no data. */
const SILENT_LOOKS = 3;

export interface LookDeps {
  observer?: Pick<RolloutObserver, 'observe'>;
  fleetVersions?: Pick<FleetVersions, 'notReady'>;
  texts: Pick<PolicyTexts, 'policy' | 'named' | 'accelerators'>;
  /** Without one no query of a policy's guardrails can be read, and each fails for it. */
  metrics?: Pick<MetricPoller, 'take'>;
  telemetry: Telemetry;
}

/**
 * The look at a rollout that is due now; undefined where there is nothing to see yet. Its time is the controller's.
 *
 * @param nowMs log time
 */
export async function lookOf(
  name: string,
  scope: ScopeState,
  nowMs: number,
  lookMs: number,
  deps: LookDeps,
): Promise<Look | undefined> {
  const { rollout, epoch, live } = scope;
  if (rollout === undefined) return undefined;
  const { name: policy, digest: candidateDigest } = rollout.candidate;
  const scoreEdges = Object.fromEntries(
    Object.entries(rollout.scores).map(([head, { edges }]) => [head, edges]),
  );
  const digests = [live?.digest ?? '', candidateDigest];
  const models = digests.flatMap((digest) => deps.texts.named(digest));
  const accelerators = digests.flatMap((digest) => deps.texts.accelerators(digest));
  const watched = { policy, epoch, candidateDigest, models, accelerators, scoreEdges };
  const seen = await deps.observer?.observe(name, watched);
  if (seen !== undefined) {
    const metrics = readMetrics(name, rollout, deps);
    const candidate = deps.texts.policy(candidateDigest);
    const modelsNotReady =
      candidate === undefined ? [] : (deps.fleetVersions?.notReady(candidate, 'some') ?? []);
    const observation = observationShape({ ...seen, metrics, modelsNotReady, atMs: nowMs });
    if (observation !== MISFIT) return { kind: 'look', scope: name, observation: fitLook(observation) };
    deps.telemetry.logger.error({ scope: name }, 'an observation of a rollout is impossible; it is left out');
  }
  const sinceMs = nowMs - Math.max(rollout.lastLookMs, rollout.stageSinceMs);
  if (sinceMs < SILENT_LOOKS * lookMs) return undefined;
  const metrics = readMetrics(name, rollout, deps);
  return { kind: 'look', scope: name, observation: { ...silentWindow(nowMs, sinceMs), metrics } };
}

function readMetrics(
  scope: string,
  { salt, terms: { queries } }: RolloutState,
  { metrics }: LookDeps,
): Observation['metrics'] {
  if (metrics !== undefined) return metrics.take(scope, salt, queries);
  return Object.fromEntries(
    queries.map((query) => [query.name, { failed: 'the controller has no address of a Prometheus' }]),
  );
}
