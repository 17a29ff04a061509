import type { Publication } from '../model/catalogue.ts';
import { isSameVersion, type PublishedModel } from '../model/published-model.ts';
import { previousOf, type ScopeState } from '../rollout/rollout-state.ts';
import type { ControllerState } from './controller-state.ts';
import type { PublishedPolicy } from './published-policy.ts';

/** After a version was published, for the first time or again: then it may lie somewhere else. */
export function withModel(
  models: readonly Publication[],
  model: PublishedModel,
  publication: number,
): readonly Publication[] {
  const place = models.findIndex((known) => isSameVersion(known.model, model));
  return place < 0 ? [...models, { model, publication }] : models.with(place, { model, publication });
}

/**
 * Epoch of the catalogue's pointer. What workers must hold ready follows from the models and from the policies that name them, so it rises with any
 * change of either: it is the sum of counters of which none ever falls.
 */
export function catalogueEpoch({
  publications,
  catalogueReseeded,
  scopes,
}: Pick<ControllerState, 'publications' | 'catalogueReseeded' | 'scopes'>): number {
  let epoch = publications + catalogueReseeded;
  for (const scope of scopes.values()) epoch += scope.epoch + scope.published.length;
  return epoch;
}

/**
 * The policies of a scope that act, or may act without being published again: the live one and the one on its way, those that wait for START, and
 * the one that a rollback goes to, and the one that was live before, which a router's last-known-good may be.
 */
export function policiesInUse(scope: ScopeState): readonly PublishedPolicy[] {
  const { live, rollout, published, wentLive } = scope;
  const previous = previousOf(scope);
  const [before] = wentLive.filter((version) => version !== live?.version).slice(-1);
  return published.filter(
    ({ version }) =>
      version === live?.version ||
      version === rollout?.candidate.version ||
      version === before ||
      version === previous?.version ||
      version > (live?.version ?? 0),
  );
}
