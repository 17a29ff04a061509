import type { Settings } from '../config/settings.ts';
import { DEFAULT_REQUEST_LIMITS } from '../core/request/limits.ts';
import { createSignalExtractor } from '../core/signals/extract.ts';
import { costModels } from '../inference/cost-models.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import {
  createFeatureExtractorStage,
  type FeatureExtractorConfig,
} from '../stages/feature-extractor/stage.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';

/** A router only holds work back from a worker that is silent; a refusal is for good, so it takes more to be believed gone. */
const WORKER_GONE_FACTOR = 10;

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

export async function extractorConfig(
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
    forgetWorkersMs: WORKER_GONE_FACTOR * settings.router.statusStaleMs,
  };
}
