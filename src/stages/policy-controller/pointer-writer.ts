import { isSameJson } from '../../core/control/same-json.ts';
import { MillraceError } from '../../core/errors.ts';
import { pointerOf, type ScopeState } from '../../core/rollout/rollout-state.ts';
import type { Clock } from '../../ports/clock.ts';
import { COUNT_MAX, type PolicyPointer, type PolicyRef } from '../../ports/control-store.ts';
import { NamedKeys, type NamedKeysDeps } from './named-keys.ts';

const STORE_RETRY_MS = 500;

export interface PointerWriterDeps extends NamedKeysDeps {
  clock: Clock;
}

/** What the store holds, and the log does not, under a term that is over or one that is ours. */
export interface Ahead {
  readonly epoch: number;
}

/** Keeps the store's pointers at what the log says, and renews the lease of a canary by its beat. */
export class PointerWriter {
  readonly #deps: PointerWriterDeps;
  /** By scope: how often its canary was renewed. Rises over epochs too. */
  readonly #beats = new Map<string, number>();
  /** By scope: the epoch that this leader has in the store. */
  readonly #written = new Map<string, number>();
  readonly #named: NamedKeys;
  /** By scope: what was told last of a store that did not take its pointer. */
  readonly #told = new Map<string, string>();

  constructor(deps: PointerWriterDeps) {
    this.#deps = deps;
    this.#named = new NamedKeys(deps);
  }

  /** A new leader knows nothing of what is in the store. */
  forget(): void {
    this.#written.clear();
    this.#told.clear();
  }

  /** The highest term under which any of these pointers was written; 0 where there is none, or the store is away. */
  async highestTerm(scopes: Iterable<string>): Promise<number> {
    let highest = 0;
    try {
      for (const scope of scopes) highest = Math.max(highest, (await this.#readable(scope))?.term ?? 0);
    } catch (error) {
      this.#deps.telemetry.logger.warn(
        { error: String(error) },
        'the terms in the control store are not known, as it does not answer',
      );
    }
    return highest;
  }

  /**
   * The store may be away: the log already has the decision, so this goes on until the store has it too, or the leadership is over.
   * @returns what the store has instead, where it is ahead of the log
   */
  async bring(name: string, scope: ScopeState, term: number, over: AbortSignal): Promise<Ahead | undefined> {
    if (this.#written.get(name) === scope.epoch) return undefined;
    return this.#insist(name, over, () => this.#write(name, scope, term));
  }

  /** The same pointer by other signatures: a policy that is in force was signed anew, or a key was taken out. Insists, as `bring` does. */
  async prove(name: string, scope: ScopeState, term: number, over: AbortSignal): Promise<void> {
    const pointer = this.#pointer(name, scope, term);
    await this.#insist(name, over, () =>
      pointer === undefined ? this.#named.writeRevocations() : this.#named.write(pointer),
    );
  }

  async #insist<T>(name: string, over: AbortSignal, write: () => Promise<T>): Promise<T | undefined> {
    while (!over.aborted) {
      try {
        return await write();
      } catch (error) {
        this.#deps.telemetry.logger.warn(
          { scope: name, error: String(error) },
          'the control store does not answer; trying again',
        );
        await new Promise<void>((resolve) => this.#deps.clock.after(STORE_RETRY_MS, resolve));
      }
    }
    return undefined;
  }

  /**
   * Writes again what the store lost, of the pointer and of what it names: an emptied or older store is seeded from what the log said.
   * @returns as `bring` does
   */
  async reconcile(name: string, scope: ScopeState, term: number): Promise<Ahead | undefined> {
    const { telemetry } = this.#deps;
    const pointer = this.#pointer(name, scope, term);
    if (pointer === undefined) return undefined;
    try {
      const stored = await this.#readable(name);
      if (stored !== undefined && stored.term === term && meansTheSame(stored, pointer)) {
        await this.#named.restore(name, pointer);
        return undefined;
      }
      if (stored === undefined || stored.epoch < pointer.epoch)
        telemetry.logger.warn(
          { scope: name, epoch: pointer.epoch, storedEpoch: stored?.epoch },
          'the control store lost the pointer; seeding it again',
        );
      return await this.#write(name, scope, term);
    } catch (error) {
      telemetry.logger.debug({ scope: name, error: String(error) }, 'the control store does not answer');
      return undefined;
    }
  }

  /** A pointer that is none is as good as lost: routers refuse it. */
  async #readable(name: string): Promise<PolicyPointer | undefined> {
    try {
      return await this.#deps.store.readPointer(name);
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== 'MALFORMED') throw error;
      return undefined;
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

  async #write(name: string, scope: ScopeState, term: number): Promise<Ahead | undefined> {
    const pointer = this.#pointer(name, scope, term);
    if (pointer === undefined) return undefined;
    await this.#named.write(pointer);
    const written = await this.#deps.store.writePointer(name, pointer);
    const stored = written.status === 'stale' ? written.current : undefined;
    const isAhead = stored !== undefined && this.#isAhead(name, pointer, stored);
    if (!isAhead) this.#written.set(name, pointer.epoch);
    return isAhead ? { epoch: stored.epoch } : undefined;
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

  /** Whether a store that did not take the pointer has what the log does not, and a leader may answer that. Tells of it, once. */
  #isAhead(scope: string, { epoch, term, ...content }: PolicyPointer, stored: PolicyPointer): boolean {
    if (stored.term === term && meansTheSame(stored, { epoch, term, ...content })) return false;
    const isOurs = stored.term <= term && stored.epoch < COUNT_MAX;
    const told = `${stored.epoch} ${stored.term}`;
    if (told === this.#told.get(scope)) return isOurs;
    this.#told.set(scope, told);
    const { logger } = this.#deps.telemetry;
    const what = { scope, epoch, term, stored };
    if (stored.term > term) logger.error(what, 'the store holds a newer pointer: another controller leads');
    else if (!isOurs) logger.error(what, 'the store holds the highest epoch that there is; delete that key');
    // Usually the last decision of the leader before, which did not get to commit the command: it is decided again right after.
    else logger.warn(what, 'the store is ahead of the log; a higher epoch answers it');
    return isOurs;
  }
}

/** Whether routers do the same under both, at the same epoch. */
function meansTheSame(one: PolicyPointer, other: PolicyPointer): boolean {
  return one.epoch === other.epoch && isSameJson(meaningOf(one), meaningOf(other));
}

function meaningOf({ stable, canary }: PolicyPointer): object {
  return { stable: refOf(stable), canary: canary && { ...canary, policy: refOf(canary.policy), beat: 0 } };
}

function refOf({ digest, name, version }: PolicyRef): PolicyRef {
  return { digest, name, version };
}
