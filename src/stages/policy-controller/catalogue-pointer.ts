import type { ControllerState } from '../../core/control/controller-state.ts';
import { catalogueEpoch, policiesInUse } from '../../core/control/published-models.ts';
import { CATALOGUE_SCOPE, catalogueOf, writeCatalogue } from '../../core/model/catalogue.ts';
import { namedModels } from '../../core/policy/document.ts';
import { NO_SCOPE, type ScopeState } from '../../core/rollout/rollout-state.ts';
import type { PointerWriter } from './pointer-writer.ts';
import type { CheckedPolicy } from './read-command.ts';

export interface CataloguePointerDeps {
  pointers: Pick<PointerWriter, 'bring' | 'reconcile'>;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  checkPolicy(bytes: Uint8Array): CheckedPolicy;
  /** The published text with this digest. */
  document(digest: string): Uint8Array | undefined;
}

/**
 * Keeps the catalogue of published model versions in the store, by the same means as a policy: a document under its digest, and a pointer that only
 * rises. It follows from the state and the texts of the policies in use, so every leader writes the same.
 */
export class CataloguePointer {
  readonly #deps: CataloguePointerDeps;
  /** By the digest of a policy: what it names. */
  #named = new Map<string, readonly string[]>();
  #current: { readonly scope: ScopeState; readonly bytes: Uint8Array } | undefined;

  constructor(deps: CataloguePointerDeps) {
    this.#deps = deps;
  }

  /** The text of the catalogue, where the digest is its. */
  document(digest: string): Uint8Array | undefined {
    return this.#current?.scope.live?.digest === digest ? this.#current.bytes : undefined;
  }

  /** As `PointerWriter.bring`. Nothing while no model version was published. */
  async bring(state: ControllerState, over: AbortSignal): Promise<void> {
    const scope = this.#scopeOf(state);
    if (scope !== undefined) await this.#deps.pointers.bring(CATALOGUE_SCOPE, scope, state.term, over);
  }

  async reconcile(state: ControllerState): Promise<void> {
    const scope = this.#scopeOf(state);
    if (scope !== undefined) await this.#deps.pointers.reconcile(CATALOGUE_SCOPE, scope, state.term);
  }

  #scopeOf(state: ControllerState): ScopeState | undefined {
    if (state.models.length === 0) return undefined;
    const epoch = catalogueEpoch(state);
    if (this.#current?.scope.epoch === epoch) return this.#current.scope;
    const bytes = Buffer.from(writeCatalogue(catalogueOf(state.models, this.#namedIn(state))));
    const live = { digest: this.#deps.digest(bytes), name: CATALOGUE_SCOPE, version: state.publications };
    const scope = { ...NO_SCOPE, live, epoch };
    this.#current = { scope, bytes };
    return scope;
  }

  #namedIn(state: ControllerState): ReadonlySet<string> {
    const inUse = [...state.scopes.values()].flatMap(policiesInUse);
    this.#named = new Map(inUse.map(({ digest }) => [digest, this.#namedBy(digest)]));
    return new Set([...this.#named.values()].flat());
  }

  /** A text that this controller would refuse now names nothing that it could know of. */
  #namedBy(digest: string): readonly string[] {
    const known = this.#named.get(digest);
    if (known !== undefined) return known;
    const bytes = this.#deps.document(digest);
    if (bytes === undefined) return [];
    try {
      return namedModels(this.#deps.checkPolicy(bytes));
    } catch {
      return [];
    }
  }
}
