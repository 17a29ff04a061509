import type { Dispatch } from '../../contracts/records.ts';
import { versionName } from '../../core/model/published-model.ts';
import { compareVersions } from '../../core/routing/choose.ts';
import type { LoadedModel } from '../../ports/accelerator.ts';

/** The versions that a worker can run: those of its model folder, for good, and published ones that come and go. */
export class LoadedVersions {
  readonly folder: readonly LoadedModel[];
  readonly #newestFirst: readonly { model: LoadedModel; variant: string }[];
  readonly #published = new Map<string, LoadedModel>();

  constructor(folder: readonly LoadedModel[]) {
    this.folder = folder;
    this.#newestFirst = folder
      .toSorted((a, b) => compareVersions(b.version, a.version))
      .map((model) => ({ model, variant: model.variant.toUpperCase() }));
  }

  add(model: LoadedModel): void {
    this.#published.set(versionName(model), model);
  }

  /** Requests find it no more; those that have it keep it. */
  remove(model: LoadedModel): void {
    if (this.#published.get(versionName(model)) === model) this.#published.delete(versionName(model));
  }

  /** Of the backend's kernels those that can run a version which is here; all of them where none is. */
  kernelsOf(backend: readonly string[]): string[] {
    const models = [...this.folder, ...this.#published.values()];
    const canRun = (kernel: string): boolean =>
      models.some(({ kernels = backend }) => kernels.includes(kernel));
    return models.length === 0 ? [...backend] : backend.filter(canRun);
  }

  /** The version that is named; where none is, the newest of the variant in the folder: a published one serves only who names it. */
  modelFor(family: string, version: string | null, variant: Dispatch['variant']): LoadedModel | undefined {
    for (const known of this.#newestFirst) {
      if (known.model.family !== family) continue;
      if (version === null ? known.variant === variant : known.model.version === version) return known.model;
    }
    return version === null ? undefined : this.#published.get(versionName({ family, version }));
  }
}
