import { fields, list, MISFIT, parseJson, text } from '../../core/control/json-shape.ts';
import { MillraceError } from '../../core/errors.ts';
import {
  CATALOGUE_SCOPE,
  type Catalogue,
  type CataloguedModel,
  readCatalogue,
} from '../../core/model/catalogue.ts';
import { modelProofRefusal } from '../../core/model/model-proof.ts';
import { versionName } from '../../core/model/published-model.ts';
import { checkPublishedModel } from '../../core/model/read-published-model.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { PointerFollower } from '../pointer-follower.ts';
import { RevokedKeys, type SignatureTrust } from '../signature-trust.ts';
import type { OfferedVersion } from './version-entries.ts';

export interface CatalogueSourceDeps {
  store: ControlStore;
  library: Pick<ModelLibrary, 'keepCatalogue' | 'keptCatalogue'>;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Whom versions are taken from; from anybody where it is left out. */
  trust?: SignatureTrust | undefined;
  /** The versions of a catalogue. @param origin `kept`: by an earlier life, so that it may be old */
  apply(versions: readonly OfferedVersion[], origin: 'store' | 'kept'): void;
  /** Called when `epoch` is another. */
  onEpoch(): void;
}

/** What is kept of a catalogue: its text, and the keys that counted no more when it was taken. */
const keptShape = fields({ catalogue: text, revoked: list(text) });

/**
 * Follows the catalogue of published versions in the store, and keeps it for who starts while the store is away. Of what it says nothing is believed:
 * paths, digests, and who signed each version are checked.
 */
export class CatalogueSource {
  readonly #deps: CatalogueSourceDeps;
  readonly #revoked: RevokedKeys | undefined;
  readonly #follower: PointerFollower;
  #epoch = 0;
  #digest = '';

  constructor(deps: CatalogueSourceDeps) {
    this.#deps = deps;
    this.#revoked = deps.trust && new RevokedKeys(deps.trust);
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
    const read = parseJson(kept, keptShape);
    try {
      if (read !== MISFIT) this.#revoked?.restore(read.revoked);
      // Before there were keys to keep, the catalogue was kept alone.
      this.#apply(read === MISFIT ? kept : read.catalogue, 'kept');
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
      if (this.#revoked !== undefined) this.#revoked.revoke(await this.#deps.store.readRevocations());
      const catalogue = Buffer.from(bytes).toString('utf8');
      this.#apply(catalogue, 'store');
      this.#digest = digest;
      const revoked = [...(this.#revoked?.keys ?? [])];
      await this.#deps.library.keepCatalogue(JSON.stringify({ catalogue, revoked }));
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

  #checked({ versions }: Catalogue): OfferedVersion[] {
    return versions.flatMap((version) => {
      try {
        const model = checkPublishedModel(version.model, (checked) => this.#digestOf(checked));
        const checked = { ...version, model };
        return [{ version: checked, refusal: this.#refusal(checked) }];
      } catch (error) {
        const what = { model: versionName(version.model), error: String(error) };
        this.#deps.telemetry.logger.error(what, 'a version in the catalogue is none');
        return [];
      }
    });
  }

  #refusal(version: CataloguedModel): string | undefined {
    const { trust } = this.#deps;
    if (trust === undefined || this.#revoked === undefined) return undefined;
    const digest = (checked: string): string => this.#digestOf(checked);
    const reason = modelProofRefusal(trust, this.#revoked.keys, version, digest, trust.verify);
    return reason === undefined ? undefined : `signature: ${reason}`;
  }

  #digestOf(checked: string): string {
    return this.#deps.digest(Buffer.from(checked));
  }
}
