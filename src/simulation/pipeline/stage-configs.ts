import type { Settings } from '../../config/settings.ts';
import type { TopicNames } from '../../contracts/topics.ts';
import { poolsOf } from '../../core/policy/fleet-pools.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../core/request/limits.ts';
import type { ModelRepository } from '../../inference/repository/open-repository.ts';
import type { AcceleratorWorkerConfig } from '../../stages/accelerator-worker/stage.ts';
import type { FeatureExtractorConfig } from '../../stages/feature-extractor/stage.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../stages/policy-controller/controller-config.ts';
import type { PolicyControllerConfig } from '../../stages/policy-controller/stage.ts';
import type { RequestRouterConfig } from '../../stages/request-router/stage.ts';
import type { SimulatedFleet, SimulatedPool } from '../fleet/simulated-fleet.ts';

/** As the extractor refuses workers that it has not heard of for so long. */
const WORKER_GONE_FACTOR = 10;

export function extractorConfig(
  settings: Settings,
  of: { topics: TopicNames; repository: ModelRepository; partitions: number },
): FeatureExtractorConfig {
  const { limits, deadLetterPayload, unacknowledgedMax, tries, router } = settings;
  return {
    ingress: [of.topics.ingress()],
    families: new Map(of.repository.families.map(({ family, contract }) => [family, contract])),
    limits: {
      ...DEFAULT_REQUEST_LIMITS,
      tensorBytesMax: limits.requestBytesMax,
      contextKeys: new Set(limits.contextKeys),
      resultPartitions: of.partitions,
    },
    deadLetterPayload,
    unacknowledgedMax,
    tries,
    forgetWorkersMs: WORKER_GONE_FACTOR * router.statusStaleMs,
  };
}

export function routerConfig(
  settings: Settings,
  of: { name: string; ackPartition: number; fleet: SimulatedFleet },
): RequestRouterConfig {
  const { router, guardrails, unacknowledgedMax, deadLetterPayload, tries, windowMs } = settings;
  return {
    router: of.name,
    ackPartition: of.ackPartition,
    creditsMax: router.creditsMax,
    statusStaleMs: router.statusStaleMs,
    giveUpGraceMs: router.giveUpGraceMs,
    latencyApartMin: guardrails.latencyApartMin,
    poolsOf: poolsOf(of.fleet.fleet),
    unacknowledgedMax,
    deadLetterPayload,
    tries,
    windowMs,
  };
}

export function workerConfig(
  settings: Settings,
  of: { pool: SimulatedPool; slot: number; life: number; expectedSpeed: number },
): AcceleratorWorkerConfig {
  const { worker, overload, features, tries, windowMs, unacknowledgedMax, deadLetterPayload } = settings;
  const { pool, accelerator, capacityClass } = of.pool;
  const name = `${pool}-${of.slot}`;
  return {
    worker: name,
    incarnation: `${name}#${of.life}`,
    pool,
    accelerator,
    host: name,
    capacityClass,
    overload,
    slots: [of.slot],
    slotsMax: 1,
    batchRequestsMax: worker.batchRequestsMax,
    batchCandidatesMax: worker.batchCandidatesMax,
    batchMsMax: worker.batchMsMax,
    batchesInFlightMax: worker.batchesInFlightMax,
    featuresWaitMs: features.waitMs,
    tries,
    heartbeatMs: worker.heartbeatMs,
    windowMs,
    ackCoalesceMs: worker.ackCoalesceMs,
    unacknowledgedMax,
    deadLetterPayload,
    versionsMax: worker.modelVersionsMax,
    unloadAfterMs: worker.modelUnloadAfterMs,
    build: 'simulated',
    expectedSpeed: of.expectedSpeed,
  };
}

export function controllerConfig(settings: Settings): PolicyControllerConfig {
  return {
    controller: 'controller',
    acceptUnsigned: true,
    reconcileMs: settings.controller.reconcileMs,
    tuning: undefined,
    rollout: { ...DEFAULT_ROLLOUT_CONFIG, mode: 'immediate' },
  };
}
