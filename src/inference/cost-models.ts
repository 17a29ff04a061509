import type { CostModel } from '../core/signals/cost-model.ts';
import { costOf } from './cascade/cascade-cost.ts';
import type { ModelRepository } from './repository/open-repository.ts';

/** By `family@version`, and by family for requests that leave the version to the policy: that of its newest baseline version. */
export function costModels(repository: ModelRepository): Map<string, CostModel> {
  const models = new Map<string, CostModel>();
  for (const { family, versions } of repository.families) {
    for (const each of versions) models.set(`${family}@${each.version}`, costOf(repository, each));
    const newest = versions.filter((version) => version.variant === 'baseline').at(-1) ?? versions.at(-1);
    if (newest !== undefined) models.set(family, costOf(repository, newest));
  }
  return models;
}
