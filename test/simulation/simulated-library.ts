import { MillraceError } from '../../src/core/errors.ts';
import { versionName } from '../../src/core/model/published-model.ts';
import type { GrowingRepository } from '../../src/inference/repository/growing-repository.ts';
import type { ModelLibrary } from '../../src/ports/model-library.ts';
import { repository } from './fleet.ts';

/**
 * A library whose versions are all the committed ranker under other numbers: fetching takes no time, and fails for those that `refusals` names.
 * What the worker makes of a version is real.
 */
export function simulatedLibrary(
  own: GrowingRepository,
  refusals: ReadonlyMap<string, string>,
): ModelLibrary {
  return {
    async fetch(model) {
      const why = refusals.get(versionName(model));
      if (why !== undefined) throw new MillraceError('INVALID_MODEL', why);
      const { family, version } = model;
      const renamed = { ...repository.version('ranker', '1'), version };
      own.add({ ...repository, version: () => renamed }, family, version);
      return { isOfFolder: false };
    },
    forget: async ({ family, version }) => own.remove(family, version),
    retain: async () => undefined,
    keepCatalogue: async () => undefined,
    keptCatalogue: async () => undefined,
  };
}
