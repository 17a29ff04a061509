import { MillraceError } from '../core/errors.ts';
import { type PublishedModel, versionName } from '../core/model/published-model.ts';
import type { ModelLibrary } from '../ports/model-library.ts';
import type { Logger } from '../ports/telemetry.ts';
import { describeVersion } from './repository/describe-version.ts';
import type { GrowingRepository } from './repository/growing-repository.ts';
import { openRepository } from './repository/open-repository.ts';
import { VersionCache, type VersionCacheOptions } from './repository/version-cache.ts';

export interface ModelLibraryOptions extends VersionCacheOptions {
  logger: Logger;
  /** Of the accelerators of this process. */
  repository: GrowingRepository;
  /** A fetch that takes longer is ended, and tried again later. */
  fetchTimeoutMs: number;
}

/** Versions fetched into a folder of this machine; one fetch at a time per version, however many workers of this process want it. */
export function modelLibrary(options: ModelLibraryOptions): ModelLibrary {
  const { repository, logger } = options;
  const cache = new VersionCache(options);
  const running = new Map<string, Promise<{ isOfFolder: boolean }>>();
  /** Fetched, or being fetched, and not forgotten. */
  const held = new Map<string, PublishedModel>();
  let retaining: Promise<void> = Promise.resolve();
  const fetch = async (model: PublishedModel, over: AbortSignal): Promise<{ isOfFolder: boolean }> => {
    if (await isOfFolder(options, model, over)) return { isOfFolder: true };
    held.set(keyOf(model), model);
    // What is being removed would be found, and then be gone.
    await retaining;
    const root = await inTime(options, over, (signal) => cache.fetch(model, signal));
    repository.add(await openRepository(root, undefined, repository.tableCache), model.family, model.version);
    return { isOfFolder: false };
  };
  return {
    fetch(model, over) {
      const key = keyOf(model);
      const known = running.get(key);
      if (known !== undefined) return known;
      const fetching = fetch(model, over).finally(() => running.delete(key));
      running.set(key, fetching);
      return fetching;
    },
    retain(models) {
      retaining = retaining.then(async () => {
        try {
          await cache.retain([...models, ...held.values()]);
        } catch (error) {
          logger.warn({ error: String(error) }, 'files of versions that no catalogue names stay');
        }
      });
      return retaining;
    },
    async forget(model) {
      held.delete(keyOf(model));
      repository.remove(model.family, model.version);
      await cache
        .forget(model)
        .catch((error: unknown) =>
          logger.warn({ model: versionName(model), error: String(error) }, 'files of a version stay'),
        );
    },
    async keepCatalogue(text) {
      await cache
        .keep(text)
        .catch((error: unknown) => logger.warn({ error: String(error) }, 'the catalogue cannot be kept'));
    },
    async keptCatalogue() {
      try {
        return await cache.kept();
      } catch (error) {
        logger.warn({ error: String(error) }, 'the catalogue that was kept cannot be read');
        return undefined;
      }
    },
  };
}

/** The digest is of the files alone: another version may have the same. */
function keyOf(model: PublishedModel): string {
  return `${versionName(model)} ${model.digest}`;
}

/** @throws MillraceError INVALID_MODEL where the folder has another version of that name: it was there first, and serves */
async function isOfFolder(
  { repository, source }: ModelLibraryOptions,
  model: PublishedModel,
  over: AbortSignal,
): Promise<boolean> {
  const { family, version, digest } = model;
  const known = repository.families.find((each) => each.family === family)?.versions ?? [];
  if (!known.some((each) => each.version === version)) return false;
  const own = await describeVersion(source, `${repository.root}/${family}/${version}`, over);
  if (own.digest === digest) return true;
  throw new MillraceError(
    'INVALID_MODEL',
    `the model folder of this worker has another ${versionName(model)}`,
    { value: own.digest, allowed: digest, advice: 'Publish it as another version' },
  );
}

async function inTime<T>(
  { clock, fetchTimeoutMs }: ModelLibraryOptions,
  over: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const cancel = clock.after(fetchTimeoutMs, () => late.abort());
  try {
    return await work(AbortSignal.any([over, late.signal]));
  } catch (error) {
    if (!late.signal.aborted) throw error;
    throw new MillraceError('MODEL_UNAVAILABLE', `fetching took longer than ${fetchTimeoutMs} ms`, {
      advice: 'worker.modelFetchTimeoutMs says how long it may take',
      cause: error,
    });
  } finally {
    cancel();
  }
}
