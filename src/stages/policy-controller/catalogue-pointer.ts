import type { ControllerState } from '../../core/control/controller-state.ts';
import { catalogueEpoch, policiesInUse, withModel } from '../../core/control/published-models.ts';
import type { PublishedPolicy } from '../../core/control/published-policy.ts';
import {
  CATALOGUE_SCOPE,
  type Catalogue,
  catalogueOf,
  catalogueRefusal,
  fittedCatalogue,
  writeCatalogue,
} from '../../core/model/catalogue.ts';
import type { ModelProof } from '../../core/model/model-proof.ts';
import { type PublishedModel, versionName } from '../../core/model/published-model.ts';
import { NO_SCOPE, type ScopeState } from '../../core/rollout/rollout-state.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { ModelProofs } from './model-proofs.ts';
import type { Ahead, PointerWriter } from './pointer-writer.ts';
import type { PolicyTexts } from './policy-texts.ts';

export interface CataloguePointerDeps {
  pointers: Pick<PointerWriter, 'bring' | 'reconcile'>;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  texts: PolicyTexts;
  proofs: Pick<ModelProofs, 'of'>;
  logger: Logger;
}

/**
 * Keeps the catalogue of published model versions in the store, by the same means as a policy: a document under its digest, and a pointer that only
 * rises. It follows from the state and the texts of the policies in use, so every leader writes the same.
 */
export class CataloguePointer {
  readonly #deps: CataloguePointerDeps;
  #current: { readonly scope: ScopeState; readonly bytes: Uint8Array } | undefined;

  constructor(deps: CataloguePointerDeps) {
    this.#deps = deps;
  }

  /** The text of the catalogue, where the digest is its. */
  document(digest: string): Uint8Array | undefined {
    return this.#current?.scope.live?.digest === digest ? this.#current.bytes : undefined;
  }

  /** A new leader's log may have given the same epoch another meaning. */
  forget(): void {
    this.#current = undefined;
  }

  /** As `PointerWriter.bring`. Nothing while no model version was published. */
  async bring(state: ControllerState, over: AbortSignal): Promise<Ahead | undefined> {
    const scope = this.#scopeOf(state);
    return scope && this.#deps.pointers.bring(CATALOGUE_SCOPE, scope, state.term, over);
  }

  /**
   * Why the version cannot come into the catalogue: the store would not take it. What is in the log must get into the store.
   * @param proof of its publication
   */
  refusal(state: ControllerState, model: PublishedModel, proof: ModelProof | undefined): string | undefined {
    const models = withModel(state.models, model, state.publications + 1);
    const proofOf = (name: string): ModelProof | undefined =>
      name === versionName(model) ? proof : this.#deps.proofs.of(name);
    return catalogueRefusal(this.#catalogueOf({ ...state, models }, proofOf), model);
  }

  async reconcile(state: ControllerState): Promise<Ahead | undefined> {
    const scope = this.#scopeOf(state);
    return scope && this.#deps.pointers.reconcile(CATALOGUE_SCOPE, scope, state.term);
  }

  #scopeOf(state: ControllerState): ScopeState | undefined {
    if (state.models.length === 0) return undefined;
    const epoch = catalogueEpoch(state);
    if (this.#current?.scope.epoch === epoch) return this.#current.scope;
    const { catalogue, leftOut } = fittedCatalogue(
      this.#catalogueOf(state, (name) => this.#deps.proofs.of(name)),
    );
    if (leftOut.length > 0)
      this.#deps.logger.error(
        { versions: leftOut.map(({ model }) => versionName(model)) },
        'the catalogue of models is full: workers do not learn of these versions',
      );
    const bytes = Buffer.from(writeCatalogue(catalogue));
    const live = { digest: this.#deps.digest(bytes), name: CATALOGUE_SCOPE, version: state.publications };
    const scope = { ...NO_SCOPE, live, epoch };
    this.#current = { scope, bytes };
    return scope;
  }

  #catalogueOf(state: ControllerState, proofOf: (name: string) => ModelProof | undefined): Catalogue {
    const { texts } = this.#deps;
    const scopes = [...state.scopes.values()];
    const namedBy = (policies: readonly PublishedPolicy[]): Set<string> =>
      new Set(policies.flatMap(({ digest }) => texts.named(digest)));
    const published = scopes.flatMap((scope) => scope.published);
    texts.keep(new Set(published.map(({ digest }) => digest)));
    const named = { inUse: namedBy(scopes.flatMap(policiesInUse)), ever: namedBy(published) };
    return catalogueOf(state.models, named, proofOf);
  }
}
