import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { DEFAULT_REQUEST_LIMITS } from '../core/request/limits.ts';
import type { CostModel } from '../core/signals/cost-model.ts';
import { createSignalExtractor } from '../core/signals/extract.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { Accelerator, LoadedModel } from '../ports/accelerator.ts';
import type { ControlStore } from '../ports/control-store.ts';
import { createAcceleratorWorkerStage } from '../stages/accelerator-worker/stage.ts';
import {
  createFeatureExtractorStage,
  type FeatureExtractorConfig,
} from '../stages/feature-extractor/stage.ts';
import { createPolicyControllerStage } from '../stages/policy-controller/stage.ts';
import type { ActivePolicy } from '../stages/request-router/active-policy.ts';
import { createFusedStage } from '../stages/request-router/fused-stage.ts';
import { PolicySource } from '../stages/request-router/policy-source.ts';
import { createRequestRouterStage, type RequestRouterConfig } from '../stages/request-router/stage.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import { claimAckPartition } from './ack-partition.ts';
import { compileChecked, digestOf, poolOf, poolsOf, readBuiltInPolicy } from './policy-files.ts';

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
  surroundings: { fleet: Fleet; store: ControlStore; openModels: () => Promise<ModelRepository> },
): Promise<Stage> {
  const { fleet, store } = surroundings;
  const name = settings.router.name === '' ? `router-${randomUUID().slice(0, 8)}` : settings.router.name;
  const builtIn = readBuiltInPolicy(settings, fleet);
  const lease = await claimAckPartition(deps, store, name);
  const config: RequestRouterConfig = {
    router: `${name}#${randomUUID().slice(0, 8)}`,
    ackPartition: lease.partition,
    creditsMax: settings.router.creditsMax,
    statusStaleMs: settings.router.statusStaleMs,
    giveUpGraceMs: settings.router.giveUpGraceMs,
    poolsOf: poolsOf(fleet),
    unacknowledgedMax: settings.unacknowledgedMax,
    deadLetterPayload: settings.deadLetterPayload,
    tries: settings.tries,
    windowMs: settings.windowMs,
  };
  const stage =
    settings.topology === 'fused'
      ? await startFused(settings, deps, config, builtIn, await surroundings.openModels())
      : await createRequestRouterStage(config, deps, builtIn);
  const source = new PolicySource({
    store,
    clock: deps.clock,
    random: deps.random.stream('policy.poll'),
    telemetry: deps.telemetry,
    scope: `policy/${builtIn.ref.name}`,
    member: name,
    digest: digestOf,
    compile: (bytes) => compileChecked(bytes, fleet),
    apply: (policy) => stage.router.setPolicy(policy),
  });
  await source.start();
  return {
    ...stage,
    unready: () => stage.unready(),
    async close() {
      await source.close();
      await stage.close();
      await lease.release();
    },
  };
}

async function startFused(
  settings: Settings,
  deps: StageDeps,
  router: RequestRouterConfig,
  builtIn: ActivePolicy,
  repository: ModelRepository,
): ReturnType<typeof createFusedStage> {
  const extractor = await extractorConfig(settings, deps, repository);
  const signals = createSignalExtractor(costModels(repository));
  return createFusedStage({ extractor, router }, { ...deps, signals }, builtIn);
}

export async function startAcceleratorWorker(
  settings: Settings,
  deps: StageDeps,
  surroundings: { fleet: Fleet; backend: Accelerator; models: readonly LoadedModel[] },
): Promise<Stage> {
  const { worker } = settings;
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
      batchesInFlightMax: worker.batchesInFlightMax,
      tries: settings.tries,
      heartbeatMs: worker.heartbeatMs,
      windowMs: settings.windowMs,
      ackCoalesceMs: worker.ackCoalesceMs,
      unacknowledgedMax: settings.unacknowledgedMax,
      deadLetterPayload: settings.deadLetterPayload,
    },
    { ...deps, backend: surroundings.backend, models: surroundings.models },
  );
}

export async function startPolicyController(
  settings: Settings,
  deps: StageDeps,
  surroundings: { fleet: Fleet; store: ControlStore },
): Promise<Stage> {
  return createPolicyControllerStage(
    {
      controller: `controller-${randomUUID().slice(0, 8)}`,
      acceptUnsigned: settings.controller.acceptUnsigned,
      reconcileMs: settings.controller.reconcileMs,
    },
    {
      ...deps,
      store: surroundings.store,
      digest: digestOf,
      checkPolicy: (bytes) => compileChecked(bytes, surroundings.fleet).document,
    },
  );
}
