import { pointerOf, type ScopeState } from '../../core/rollout/rollout-state.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { PolicyProofs } from './policy-proofs.ts';

const STORE_RETRY_MS = 500;

export interface PointerWriterDeps {
  store: ControlStore;
  clock: Clock;
  telemetry: Telemetry;
  /** The published text with this digest. */
  document(digest: string): Uint8Array | undefined;
  proofs: Pick<PolicyProofs, 'envelopeOf' | 'rootOf' | 'revocations'>;
}

/** Keeps the store's pointers at what the log says, and renews the lease of a canary by its beat. */
export class PointerWriter {
  readonly #deps: PointerWriterDeps;
  /** By scope: how often its canary was renewed. Rises over epochs too. */
  readonly #beats = new Map<string, number>();
  /** By scope: the epoch that this leader has in the store. */
  readonly #written = new Map<string, number>();

  constructor(deps: PointerWriterDeps) {
    this.#deps = deps;
  }

  /** A new leader knows nothing of what is in the store. */
  forget(): void {
    this.#written.clear();
  }

  /** The highest term under which any of these pointers was written; 0 where there is none, or the store is away. */
  async highestTerm(scopes: Iterable<string>): Promise<number> {
    let highest = 0;
    try {
      for (const scope of scopes)
        highest = Math.max(highest, (await this.#deps.store.readPointer(scope))?.term ?? 0);
    } catch (error) {
      this.#deps.telemetry.logger.warn(
        { error: String(error) },
        'the terms in the control store are not known, as it does not answer',
      );
    }
    return highest;
  }

  /** The store may be away: the log already has the decision, so this goes on until the store has it too, or the leadership is over. */
  async bring(name: string, scope: ScopeState, term: number, over: AbortSignal): Promise<void> {
    if (this.#written.get(name) === scope.epoch) return;
    await this.#insist(name, over, () => this.#write(name, scope, term));
  }

  /** The same pointer by other signatures: a policy that is in force was signed anew, or a key was taken out. Insists, as `bring` does. */
  async prove(name: string, scope: ScopeState, term: number, over: AbortSignal): Promise<void> {
    const pointer = this.#pointer(name, scope, term);
    await this.#insist(name, over, () =>
      pointer === undefined ? this.#writeRevocations() : this.#writeNamed(pointer),
    );
  }

  async #insist(name: string, over: AbortSignal, write: () => Promise<void>): Promise<void> {
    while (!over.aborted) {
      try {
        await write();
        return;
      } catch (error) {
        this.#deps.telemetry.logger.warn(
          { scope: name, error: String(error) },
          'the control store does not answer; trying again',
        );
        await new Promise<void>((resolve) => this.#deps.clock.after(STORE_RETRY_MS, resolve));
      }
    }
  }

  /** Writes again what the store lost: an emptied or older store is seeded from what the log said. */
  async reconcile(name: string, scope: ScopeState, term: number): Promise<void> {
    const { store, telemetry } = this.#deps;
    const { epoch, live } = scope;
    if (live === undefined) return;
    try {
      const stored = await store.readPointer(name);
      if (stored !== undefined && stored.epoch >= epoch) return;
      telemetry.logger.warn(
        { scope: name, epoch, storedEpoch: stored?.epoch },
        'the control store lost the pointer; seeding it again',
      );
      await this.#write(name, scope, term);
    } catch (error) {
      telemetry.logger.debug({ scope: name, error: String(error) }, 'the control store does not answer');
    }
  }

  /** Tells the routers that the leader of a running rollout is alive. A store that is away is left to the next beat: the lease bears some. */
  async renew(name: string, scope: ScopeState, term: number): Promise<void> {
    if (scope.rollout === undefined) return;
    try {
      await this.#write(name, scope, term);
    } catch (error) {
      this.#deps.telemetry.logger.debug(
        { scope: name, error: String(error) },
        'the canary could not be renewed',
      );
    }
  }

  async #write(name: string, scope: ScopeState, term: number): Promise<void> {
    const { store } = this.#deps;
    const pointer = this.#pointer(name, scope, term);
    if (pointer === undefined) return;
    await this.#writeNamed(pointer);
    const written = await store.writePointer(name, pointer);
    this.#written.set(name, pointer.epoch);
    if (written.status === 'stale' && !meansTheSame(written.current, pointer))
      this.#tellStale(name, pointer, written.current);
  }

  /** What a router must find before it meets the pointer: texts, and who vouches for them. */
  async #writeNamed({ stable, canary }: PolicyPointer): Promise<void> {
    const { store, document, proofs } = this.#deps;
    const named = [stable, ...(canary === undefined ? [] : [canary.policy])].map(({ digest }) => digest);
    const roots = named.flatMap((digest) => proofs.rootOf(digest) ?? []);
    for (const digest of new Set([...named, ...roots])) {
      const [bytes, envelope] = [document(digest), proofs.envelopeOf(digest)];
      if (bytes !== undefined) await store.putDocument(digest, bytes);
      if (envelope !== undefined) await store.putEnvelope(digest, envelope);
    }
    await this.#writeRevocations();
  }

  async #writeRevocations(): Promise<void> {
    const { store, proofs } = this.#deps;
    const revocations = proofs.revocations();
    if (revocations !== undefined) await store.putRevocations(revocations);
  }

  #pointer(name: string, scope: ScopeState, term: number): PolicyPointer | undefined {
    const content = pointerOf(scope);
    if (content === undefined) return undefined;
    const { epoch, stable, canary } = content;
    if (canary === undefined) return { epoch, term, stable, canary };
    const beat = (this.#beats.get(name) ?? 0) + 1;
    this.#beats.set(name, beat);
    return { epoch, term, stable, canary: { ...canary, beat } };
  }

  #tellStale(scope: string, { epoch, term }: PolicyPointer, stored: PolicyPointer): void {
    const { logger } = this.#deps.telemetry;
    const what = { scope, epoch, term, stored };
    if (stored.term > term) logger.error(what, 'the store holds a newer pointer: another controller leads');
    // Usually the last decision of the leader before, which did not get to commit the command: it is decided again right after.
    else logger.warn(what, 'the store is ahead of the log');
  }
}

/** Whether routers do the same under both. */
function meansTheSame(one: PolicyPointer, other: PolicyPointer): boolean {
  return (
    one.stable.digest === other.stable.digest &&
    one.canary?.policy.digest === other.canary?.policy.digest &&
    one.canary?.mode === other.canary?.mode &&
    one.canary?.percent === other.canary?.percent
  );
}
