import { predictCostMs } from '../core/signals/cost-model.ts';
import type { LoadedModel } from '../ports/accelerator.ts';
import { costOf } from './cascade/cascade-cost.ts';
import type { ModelRepository } from './repository/open-repository.ts';

/** What the cost models predict for a request of middling size against what the device's own profile says, over its models; as predicted where none is loaded yet. */
export function expectedSpeed(models: readonly LoadedModel[], repository: ModelRepository): number {
  if (models.length === 0) return 1;
  const [candidates, rows] = [100, 10];
  const sum = (of: (model: LoadedModel) => number): number => models.reduce((ms, model) => ms + of(model), 0);
  const predictedMs = sum(({ family, version }) =>
    predictCostMs(costOf(repository, repository.version(family, version)), candidates, rows),
  );
  return predictedMs / sum((model) => model.predictMs(1, candidates));
}
