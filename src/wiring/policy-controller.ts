import { randomUUID } from 'node:crypto';
import { prometheusQuery } from '../adapters/prometheus/metrics-query.ts';
import type { Settings } from '../config/settings.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { poolsOf } from '../core/policy/fleet-pools.ts';
import { DEFAULT_TUNING } from '../core/tuning/tuning-terms.ts';
import type { ControlStore } from '../ports/control-store.ts';
import { openFleetVersions } from '../stages/policy-controller/fleet-versions.ts';
import { MetricPoller } from '../stages/policy-controller/metric-poller.ts';
import { openRolloutObserver } from '../stages/policy-controller/rollout-observer.ts';
import { createPolicyControllerStage } from '../stages/policy-controller/stage.ts';
import { openTuner } from '../stages/policy-controller/tuner.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import { compileChecked, digestOf } from './policy-files.ts';
import { rolloutConfig } from './rollout-config.ts';
import { controllerSigner, trustedKeys } from './trusted-keys.ts';

export async function startPolicyController(
  settings: Settings,
  deps: StageDeps,
  surroundings: { fleet: Fleet; store: ControlStore },
): Promise<Stage> {
  const { store } = surroundings;
  const signer = controllerSigner(settings, deps.telemetry.logger);
  const pools = poolsOf(surroundings.fleet);
  const observer = await openRolloutObserver({ ...deps, store, digest: digestOf }, pools);
  const fleetVersions = await openFleetVersions(deps, pools);
  const metrics = metricsOf(settings.controller);
  const tuner = settings.controller.tuning ? await openTuner(deps, surroundings.fleet) : undefined;
  const stage = await createPolicyControllerStage(
    {
      controller: `controller-${randomUUID().slice(0, 8)}`,
      acceptUnsigned: settings.controller.acceptUnsigned,
      reconcileMs: settings.controller.reconcileMs,
      rollout: rolloutConfig(settings),
      tuning: tuningTerms(settings.controller),
    },
    {
      ...deps,
      store,
      observer,
      fleetVersions,
      ...(metrics === undefined ? {} : { metrics }),
      ...(tuner === undefined ? {} : { tuner }),
      ...(signer === undefined ? {} : { signer }),
      digest: digestOf,
      checkPolicy: (bytes) => compileChecked(bytes, surroundings.fleet).document,
      signatures: trustedKeys(settings, deps.telemetry.logger),
    },
  );
  return {
    ...stage,
    async close() {
      await stage.close();
      await observer.close();
      await fleetVersions.close();
      await tuner?.close();
    },
  };
}

function tuningTerms({ tuning, tuningPeriodMs, tuningRequestsMin }: Settings['controller']) {
  return tuning ? { ...DEFAULT_TUNING, periodMs: tuningPeriodMs, requestsMin: tuningRequestsMin } : undefined;
}

function metricsOf({
  prometheusUrl: url,
  prometheusToken: token,
  prometheusTimeoutMs: timeoutMs,
}: Settings['controller']): MetricPoller | undefined {
  return url === '' ? undefined : new MetricPoller(prometheusQuery({ url, token, timeoutMs }));
}
