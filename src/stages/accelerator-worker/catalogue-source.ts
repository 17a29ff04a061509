import { MillraceError } from '../../core/errors.ts';
import {
  CATALOGUE_SCOPE,
  type Catalogue,
  type CataloguedModel,
  readCatalogue,
} from '../../core/model/catalogue.ts';
import { versionName } from '../../core/model/published-model.ts';
import { checkPublishedModel } from '../../core/model/read-published-model.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { PointerFollower } from '../pointer-follower.ts';

export interface CatalogueSourceDeps {
  store: ControlStore;
  library: Pick<ModelLibrary, 'keepCatalogue' | 'keptCatalogue'>;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** The versions of a catalogue. @param origin `kept`: by an earlier life, so that it may be old */
  apply(versions: readonly CataloguedModel[], origin: 'store' | 'kept'): void;
  /** Called when `epoch` is another. */
  onEpoch(): void;
}

/** Follows the catalogue of published versions in the store, and keeps it for who starts while the store is away. What it says is checked. */
export class CatalogueSource {
  readonly #deps: CatalogueSourceDeps;
  readonly #follower: PointerFollower;
  #epoch = 0;
  #digest = '';

  constructor(deps: CatalogueSourceDeps) {
    this.#deps = deps;
    this.#follower = new PointerFollower({
      ...deps,
      scope: CATALOGUE_SCOPE,
      take: (pointer) => this.#take(pointer),
      unreadable: async (error) =>
        deps.telemetry.logger.error({ error: String(error) }, 'the catalogue of models cannot be read'),
    });
  }

  /** Of the catalogue that is followed; 0 before there is one. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Applies what an earlier life kept. */
  async restore(): Promise<void> {
    const { library, telemetry } = this.#deps;
    const kept = await library.keptCatalogue();
    if (kept === undefined) return;
    try {
      this.#apply(kept, 'kept');
    } catch (error) {
      telemetry.logger.warn({ error: String(error) }, 'the catalogue that was kept is none');
    }
  }

  /** Resolves when the store was asked once, whatever it said. */
  start(): Promise<void> {
    return this.#follower.start();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  async #take(pointer: PolicyPointer | undefined): Promise<void> {
    if (pointer === undefined || pointer.epoch <= this.#epoch) return;
    const { digest } = pointer.stable;
    if (digest !== this.#digest) {
      const bytes = await this.#deps.store.readDocument(digest);
      if (bytes === undefined || this.#deps.digest(bytes) !== digest)
        throw new MillraceError('MALFORMED', 'the store has no such catalogue', { value: digest });
      const text = Buffer.from(bytes).toString('utf8');
      this.#apply(text, 'store');
      this.#digest = digest;
      await this.#deps.library.keepCatalogue(text);
    }
    this.#epoch = pointer.epoch;
    this.#deps.onEpoch();
  }

  /** @throws MillraceError MALFORMED */
  #apply(text: string, origin: 'store' | 'kept'): void {
    const catalogue = readCatalogue(text);
    if (catalogue === undefined)
      throw new MillraceError('MALFORMED', 'that is no catalogue', { value: text });
    this.#deps.apply(this.#checked(catalogue), origin);
  }

  /** Whoever may write to the store is not trusted for paths. */
  #checked({ versions }: Catalogue): CataloguedModel[] {
    const digest = (text: string): string => this.#deps.digest(Buffer.from(text));
    return versions.flatMap((version) => {
      try {
        return [{ ...version, model: checkPublishedModel(version.model, digest) }];
      } catch (error) {
        const what = { model: versionName(version.model), error: String(error) };
        this.#deps.telemetry.logger.error(what, 'a version in the catalogue is none');
        return [];
      }
    });
  }
}
