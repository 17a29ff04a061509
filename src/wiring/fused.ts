import type { Settings } from '../config/settings.ts';
import { createSignalExtractor } from '../core/signals/extract.ts';
import { costModels } from '../inference/cost-models.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import { createFusedStage } from '../stages/request-router/fused-stage.ts';
import type { RequestRouterConfig } from '../stages/request-router/stage.ts';
import type { StageDeps } from '../stages/stage.ts';
import { extractorConfig } from './feature-extractor.ts';
import type { Policies } from './follow-policy.ts';

/** Extractor and router in one; a module of its own, so that a router alone doesn't hold the extractor in memory. */
export async function startFused(
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
