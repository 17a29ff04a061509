import { randomUUID } from 'node:crypto';
import { prometheusQuery } from '../adapters/prometheus/metrics-query.ts';
import { packageVersion } from '../config/package-version.ts';
import type { Settings } from '../config/settings.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { DEFAULT_REQUEST_LIMITS } from '../core/request/limits.ts';
import { type CostModel, predictCostMs } from '../core/signals/cost-model.ts';
import { createSignalExtractor } from '../core/signals/extract.ts';
import { DEFAULT_TUNING } from '../core/tuning/tuning-terms.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { Accelerator, LoadedModel } from '../ports/accelerator.ts';
import type { ControlStore } from '../ports/control-store.ts';
import type { ModelLibrary } from '../ports/model-library.ts';
import { createAcceleratorWorkerStage } from '../stages/accelerator-worker/stage.ts';
import {
  createFeatureExtractorStage,
  type FeatureExtractorConfig,
} from '../stages/feature-extractor/stage.ts';
import { openFleetVersions } from '../stages/policy-controller/fleet-versions.ts';
import { MetricPoller } from '../stages/policy-controller/metric-poller.ts';
import { openRolloutObserver } from '../stages/policy-controller/rollout-observer.ts';
import { createPolicyControllerStage } from '../stages/policy-controller/stage.ts';
import { openTuner } from '../stages/policy-controller/tuner.ts';
import { createFusedStage } from '../stages/request-router/fused-stage.ts';
import { createRequestRouterStage, type RequestRouterConfig } from '../stages/request-router/stage.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import { claimAckPartition } from './ack-partition.ts';
import { followPolicy, type Policies } from './follow-policy.ts';
import { compileChecked, digestOf, poolOf, poolsOf, readBuiltInPolicy } from './policy-files.ts';
import { rolloutConfig } from './rollout-config.ts';
import { controllerSigner, storeTrust, trustedKeys } from './trusted-keys.ts';

/** Settings → a running stage; the same for a process of its own and for the embedded run. */

export async function startFeatureExtractor(
  settings: Settings,
  deps: StageDeps,
  repository: ModelRepository,
): Promise<Stage> {
  return createFeatureExtractorStage(await extractorConfig(settings, deps, repository), {
    ...deps,
    signals: createSignalExtractor(costModels(repository)),
  });
}

async function extractorConfig(
  settings: Settings,
  deps: StageDeps,
  repository: ModelRepository,
): Promise<FeatureExtractorConfig> {
  return {
    ingress: [deps.topics.ingress(), ...settings.tenants.map((tenant) => deps.topics.ingress(tenant))],
    families: new Map(repository.families.map(({ family, contract }) => [family, contract])),
    limits: {
      ...DEFAULT_REQUEST_LIMITS,
      tensorBytesMax: settings.limits.requestBytesMax,
      contextKeys: new Set(settings.limits.contextKeys),
      resultPartitions: await deps.bus.partitionCount(deps.topics.fixed('scored-results')),
    },
    deadLetterPayload: settings.deadLetterPayload,
    unacknowledgedMax: settings.unacknowledgedMax,
    tries: settings.tries,
  };
}

/** By `family@version`, and by family for requests that leave the version to the policy: that of its newest baseline version. */
export function costModels(repository: ModelRepository): Map<string, CostModel> {
  const models = new Map<string, CostModel>();
  for (const { family, versions } of repository.families) {
    for (const { version, cost } of versions) models.set(`${family}@${version}`, cost);
    const newest = versions.filter((version) => version.variant === 'baseline').at(-1) ?? versions.at(-1);
    if (newest !== undefined) models.set(family, newest.cost);
  }
  return models;
}

/**
 * The router, fused with the extractor where the topology says so, following the pointer of its policy in the store. Only the fused one reads
 * the models' contracts.
 */
export async function startRequestRouter(
  settings: Settings,
  deps: StageDeps,
  surroundings: {
    fleet: Fleet;
    store: ControlStore;
    openModels: () => Promise<ModelRepository>;
    /** Where policies are read and validated: in a thread of their own by default, so that no request waits for that. */
    checkIn?: 'thread' | 'event-loop';
  },
): Promise<Stage> {
  const { fleet, store } = surroundings;
  const name = settings.router.name === '' ? `router-${randomUUID().slice(0, 8)}` : settings.router.name;
  const builtIn = readBuiltInPolicy(settings, fleet);
  const follow = followPolicy(settings, deps, { ...surroundings, name, builtIn });
  try {
    const [lease] = await Promise.all([claimAckPartition(deps, store, name), follow.start()]);
    const config = routerConfig(settings, fleet, name, lease.partition);
    const { stable, canary } = follow.policies();
    const stage =
      settings.topology === 'fused'
        ? await startFused(settings, deps, config, { stable, canary }, await surroundings.openModels())
        : await createRequestRouterStage(config, deps, stable, canary);
    follow.swapOn(stage.router);
    return {
      ...stage,
      unready: () => stage.unready(),
      async close() {
        await follow.close();
        await stage.close();
        await lease.release();
      },
    };
  } catch (error) {
    await follow.close();
    throw error;
  }
}

function routerConfig(
  settings: Settings,
  fleet: Fleet,
  name: string,
  ackPartition: number,
): RequestRouterConfig {
  return {
    router: `${name}#${randomUUID().slice(0, 8)}`,
    ackPartition,
    creditsMax: settings.router.creditsMax,
    statusStaleMs: settings.router.statusStaleMs,
    giveUpGraceMs: settings.router.giveUpGraceMs,
    latencyApartMin: settings.guardrails.latencyApartMin,
    poolsOf: poolsOf(fleet),
    unacknowledgedMax: settings.unacknowledgedMax,
    deadLetterPayload: settings.deadLetterPayload,
    tries: settings.tries,
    windowMs: settings.windowMs,
  };
}

async function startFused(
  settings: Settings,
  deps: StageDeps,
  router: RequestRouterConfig,
  { stable, canary }: Policies,
  repository: ModelRepository,
): ReturnType<typeof createFusedStage> {
  const extractor = await extractorConfig(settings, deps, repository);
  const signals = createSignalExtractor(costModels(repository));
  return createFusedStage({ extractor, router }, { ...deps, signals }, stable, canary);
}

export async function startAcceleratorWorker(
  settings: Settings,
  deps: StageDeps,
  surroundings: {
    fleet: Fleet;
    backend: Accelerator;
    models: readonly LoadedModel[];
    repository: ModelRepository;
    store: ControlStore;
    library: ModelLibrary;
  },
): Promise<Stage> {
  const { worker } = settings;
  const { models, repository } = surroundings;
  const pool = poolOf(surroundings.fleet, worker.pool);
  return createAcceleratorWorkerStage(
    {
      worker: worker.name === '' ? `${worker.pool}-${randomUUID().slice(0, 8)}` : worker.name,
      incarnation: randomUUID(),
      pool: pool.pool,
      accelerator: pool.accelerator,
      capacityClass: pool.capacityClass,
      slots: worker.slots,
      batchRequestsMax: worker.batchRequestsMax,
      batchCandidatesMax: worker.batchCandidatesMax,
      batchMsMax: worker.batchMsMax,
      batchesInFlightMax: worker.batchesInFlightMax,
      tries: settings.tries,
      heartbeatMs: worker.heartbeatMs,
      windowMs: settings.windowMs,
      ackCoalesceMs: worker.ackCoalesceMs,
      unacknowledgedMax: settings.unacknowledgedMax,
      deadLetterPayload: settings.deadLetterPayload,
      versionsMax: worker.modelVersionsMax,
      unloadAfterMs: worker.modelUnloadAfterMs,
      build: packageVersion(),
      expectedSpeed: expectedSpeed(models, repository),
    },
    {
      ...deps,
      backend: surroundings.backend,
      models,
      store: surroundings.store,
      library: surroundings.library,
      digest: digestOf,
      trust: storeTrust(settings, 'model versions', deps.telemetry.logger),
    },
  );
}

/** What the cost models predict for a request of middling size against what the device's own profile says, over its models. */
function expectedSpeed(models: readonly LoadedModel[], repository: ModelRepository): number {
  const [candidates, rows] = [100, 10];
  const sum = (of: (model: LoadedModel) => number): number => models.reduce((ms, model) => ms + of(model), 0);
  const predictedMs = sum(({ family, version }) =>
    predictCostMs(repository.version(family, version).cost, candidates, rows),
  );
  return predictedMs / sum((model) => model.predictMs(1, candidates));
}

export async function startPolicyController(
  settings: Settings,
  deps: StageDeps,
  surroundings: { fleet: Fleet; store: ControlStore },
): Promise<Stage> {
  const { store } = surroundings;
  const signer = controllerSigner(settings, deps.telemetry.logger);
  const observer = await openRolloutObserver({ ...deps, store, digest: digestOf });
  const fleetVersions = await openFleetVersions(deps, poolsOf(surroundings.fleet));
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
