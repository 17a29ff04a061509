import type { CostModel } from '../../core/signals/cost-model.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';

/** The version's cost model, with those of the versions before it where it is a cascade; one that is not there yet counts as nothing. */
export function costOf(repository: ModelRepository, { cost, cascade }: ModelVersion): CostModel {
  if (cascade.length === 0) return cost;
  const before = cascade.flatMap(({ family, version, keep }) => {
    const versions = repository.families.find((each) => each.family === family)?.versions ?? [];
    const stage = versions.find((each) => each.version === version);
    return stage === undefined ? [] : [{ model: stage.cost, keep }];
  });
  return { ...cost, before };
}
