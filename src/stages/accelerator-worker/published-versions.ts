import { makePublishedVersion, type PublishedVersion } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import {
  CATALOGUE_SCOPE,
  type Catalogue,
  type CataloguedModel,
  readCatalogue,
} from '../../core/model/catalogue.ts';
import { type PublishedModel, versionName } from '../../core/model/published-model.ts';
import { checkPublishedModel } from '../../core/model/read-published-model.ts';
import type { Accelerator, LoadedModel } from '../../ports/accelerator.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { PointerFollower } from '../pointer-follower.ts';
import type { LoadedVersions } from './loaded-versions.ts';
import { type UnloadDeps, unload } from './unload.ts';

export interface PublishedVersionsConfig {
  /** Most published versions loaded at once. */
  versionsMax: number;
  /** A version that left the catalogue is unloaded so long after. */
  unloadAfterMs: number;
}

export interface PublishedVersionsDeps {
  store: ControlStore;
  library: ModelLibrary;
  backend: Pick<Accelerator, 'load'>;
  loaded: LoadedVersions;
  /** `sha256:<hex>`. */
  digest(bytes: Uint8Array): string;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Whether any request here still waits for this model, or is computed by it. */
  inUse(model: LoadedModel): boolean;
  /** Called when what `statuses` answers is something else. */
  onChange(): void;
}

/** A version in the catalogue, or one that left it a while ago. */
interface Entry {
  readonly version: CataloguedModel;
  readonly state: EntryState;
  /** When it left the catalogue. */
  readonly absentSinceMs: number | undefined;
}

type EntryState =
  | { readonly status: 'waiting' | 'loading' }
  /** Undefined where it is a version of the folder. */
  | {
      readonly status: 'ready';
      readonly model: LoadedModel | undefined;
      readonly variant: LoadedModel['variant'];
    }
  /** Tried again at that time; otherwise when it is published again. */
  | { readonly status: 'failed'; readonly reason: string; readonly retryAtMs: number | undefined };

/** A store that does not answer holds up nobody's start for longer. */
const STORE_WAIT_MS = 500;
/** Nor does a source: until then requests that name a version are answered by another. */
const START_WAIT_MS = 30_000;
const RETRY_MS = 15_000;
const REASON_LENGTH_MAX = 400;

/**
 * Has ready what the catalogue of published versions says: fetches a version, loads it beside those that serve, and reports whether that worked. Of
 * a version that fails the reason is reported, and nothing else changes. One version at a time, those that a policy names first.
 */
export class PublishedVersions {
  readonly #config: PublishedVersionsConfig;
  readonly #deps: PublishedVersionsDeps;
  readonly #follower: PointerFollower;
  readonly #over = new AbortController();
  #entries = new Map<string, Entry>();
  #epoch = 0;
  #digest = '';
  #working = false;
  #serves = false;
  #cancelWake: Cancel | undefined;
  #onSettled: () => void = () => undefined;

  constructor(config: PublishedVersionsConfig, deps: PublishedVersionsDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#follower = new PointerFollower({
      ...deps,
      scope: CATALOGUE_SCOPE,
      take: (pointer) => this.#take(pointer),
      unreadable: async (error) =>
        deps.telemetry.logger.error({ error: String(error) }, 'the catalogue of models cannot be read'),
    });
  }

  /** Epoch of the catalogue that is followed; 0 before there is one. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Resolves when every version that a policy names was loaded or refused, or was waited for long enough. */
  async start(): Promise<void> {
    const { clock, library } = this.#deps;
    const kept = await library.keptCatalogue();
    if (kept !== undefined) this.#applyKept(kept);
    await within(clock, STORE_WAIT_MS, this.#follower.start());
    const settled = new Promise<void>((resolve) => {
      this.#onSettled = resolve;
      this.#tellIfSettled();
    });
    await within(clock, START_WAIT_MS, settled);
    this.#serves = true;
  }

  /** For heartbeats. */
  statuses(): PublishedVersion[] {
    return [...this.#entries.values()]
      .filter(({ absentSinceMs }) => absentSinceMs === undefined)
      .map(({ version: { model }, state }) => {
        const { family, version, digest } = model;
        const head = { family, version, digest };
        switch (state.status) {
          case 'waiting':
          case 'loading':
            return makePublishedVersion({ ...head, status: 'LOADING' });
          case 'ready':
            return makePublishedVersion({
              ...head,
              status: 'READY',
              variant: state.variant === 'enhanced' ? 'ENHANCED' : 'BASELINE',
            });
          case 'failed':
            return makePublishedVersion({ ...head, status: 'FAILED', reason: state.reason });
          default:
            return state satisfies never;
        }
      });
  }

  async close(): Promise<void> {
    this.#over.abort();
    this.#cancelWake?.();
    await this.#follower.close();
  }

  async #take(pointer: PolicyPointer | undefined): Promise<void> {
    if (pointer === undefined || pointer.epoch <= this.#epoch) return;
    const { digest } = pointer.stable;
    if (digest !== this.#digest) {
      const bytes = await this.#deps.store.readDocument(digest);
      if (bytes === undefined || this.#deps.digest(bytes) !== digest)
        throw new MillraceError('MALFORMED', 'the store has no such catalogue', { value: digest });
      const text = Buffer.from(bytes).toString('utf8');
      this.#apply(text);
      this.#digest = digest;
      await this.#deps.library.keepCatalogue(text);
    }
    this.#epoch = pointer.epoch;
    this.#deps.onChange();
  }

  #applyKept(text: string): void {
    try {
      this.#apply(text);
    } catch (error) {
      this.#deps.telemetry.logger.warn({ error: String(error) }, 'the catalogue that was kept is none');
    }
  }

  /** @throws MillraceError MALFORMED */
  #apply(text: string): void {
    const catalogue = readCatalogue(text);
    if (catalogue === undefined)
      throw new MillraceError('MALFORMED', 'that is no catalogue', { value: text });
    const nowMs = this.#deps.clock.monotonicMs();
    const entries = new Map<string, Entry>();
    for (const version of this.#checked(catalogue)) {
      const name = versionName(version.model);
      entries.set(name, entryOf(version, this.#entries.get(name)));
    }
    for (const [name, entry] of this.#entries)
      if (!entries.has(name)) entries.set(name, { ...entry, absentSinceMs: entry.absentSinceMs ?? nowMs });
    this.#entries = entries;
    this.#deps.onChange();
    void this.#work();
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

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let next = this.#next(); next !== undefined && !this.#over.signal.aborted; next = this.#next())
      await this.#load(next);
    this.#working = false;
    this.#tellIfSettled();
    this.#wakeInTime();
  }

  /** The version to try now. What has been gone for long enough is unloaded on the way. */
  #next(): string | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [name, { absentSinceMs, state }] of this.#entries) {
      if (absentSinceMs === undefined || state.status === 'loading') continue;
      if (state.status !== 'ready' || nowMs - absentSinceMs >= this.#config.unloadAfterMs) this.#drop(name);
    }
    const due = [...this.#entries].filter(
      ([, { state }]) =>
        state.status === 'waiting' ||
        (state.status === 'failed' && state.retryAtMs !== undefined && state.retryAtMs <= nowMs),
    );
    const urgency = ({ version: { isNamed, publication } }: Entry): number =>
      (isNamed ? 1e12 : 0) + publication;
    return due.sort(([, a], [, b]) => urgency(b) - urgency(a))[0]?.[0];
  }

  async #load(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const { model } = entry.version;
    this.#setState(name, { status: 'loading' });
    const { library, loaded, backend, telemetry } = this.#deps;
    const { family, version } = model;
    try {
      const own = loaded.folder.find((known) => known.family === family && known.version === version);
      if (own === undefined) this.#leastFor(entry);
      await library.fetch(model, this.#over.signal);
      if (own !== undefined) {
        this.#setState(name, { status: 'ready', model: undefined, variant: own.variant });
        return;
      }
      const fresh = await backend.load(family, version, { besideOthers: this.#serves });
      const least = this.#leastFor(entry);
      if (least !== undefined) this.#drop(least);
      loaded.add(fresh);
      this.#setState(name, { status: 'ready', model: fresh, variant: fresh.variant });
      telemetry.logger.info({ model: name, digest: model.digest }, 'a published version is ready');
    } catch (error) {
      this.#fail(name, error);
    }
  }

  #fail(name: string, error: unknown): void {
    if (this.#over.signal.aborted) return;
    const reason = error instanceof Error ? error.message : String(error);
    const isLasting = error instanceof MillraceError && !error.retryable;
    const retryAtMs = isLasting ? undefined : this.#deps.clock.monotonicMs() + RETRY_MS;
    this.#setState(name, { status: 'failed', reason: reason.slice(0, REASON_LENGTH_MAX), retryAtMs });
    const { logger } = this.#deps.telemetry;
    logger.error({ model: name, reason }, 'a published version is refused; what was loaded stays');
  }

  /**
   * The version that goes where this one comes; undefined while there is room.
   * @throws MillraceError MODEL_UNAVAILABLE where none may: tried again later
   */
  #leastFor({ version: { isNamed, publication } }: Entry): string | undefined {
    const { versionsMax } = this.#config;
    const held = [...this.#entries].filter(
      ([, { state }]) => state.status === 'ready' && state.model !== undefined,
    );
    if (held.length < versionsMax) return undefined;
    const isLess = ({ version, absentSinceMs }: Entry): boolean =>
      absentSinceMs !== undefined || (!version.isNamed && (isNamed || version.publication < publication));
    const [least] = held
      .filter(([, entry]) => isLess(entry))
      .sort(([, a], [, b]) => a.version.publication - b.version.publication);
    if (least !== undefined) return least[0];
    throw new MillraceError('MODEL_UNAVAILABLE', `this worker holds ${held.length} published versions`, {
      allowed: `${versionsMax} (worker.modelVersionsMax)`,
    });
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    this.#deps.onChange();
    if (entry === undefined) return;
    const { state, version } = entry;
    const gone =
      state.status === 'ready' && state.model !== undefined
        ? unload(state.model, this.#unloadDeps())
        : undefined;
    void this.#forget(name, version.model, gone);
  }

  async #forget(name: string, model: PublishedModel, gone: Promise<void> | undefined): Promise<void> {
    const { library, telemetry } = this.#deps;
    try {
      await gone;
      if (this.#over.signal.aborted) return;
      if (gone !== undefined) telemetry.logger.info({ model: name }, 'a published version is unloaded');
      // It may be wanted again meanwhile.
      if (!this.#entries.has(name)) await library.forget(model);
    } catch (error) {
      telemetry.logger.error({ model: name, error: String(error) }, 'a published version cannot be unloaded');
    }
  }

  #unloadDeps(): UnloadDeps {
    const { clock, loaded, inUse } = this.#deps;
    return { clock, loaded, inUse, over: this.#over.signal };
  }

  #setState(name: string, state: EntryState): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.set(name, { ...entry, state });
    this.#deps.onChange();
    this.#tellIfSettled();
  }

  #tellIfSettled(): void {
    const isOpen = [...this.#entries.values()].some(
      ({ version, state }) => version.isNamed && (state.status === 'waiting' || state.status === 'loading'),
    );
    if (!isOpen) this.#onSettled();
  }

  #wakeInTime(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    const { clock } = this.#deps;
    const dueMs = [...this.#entries.values()].flatMap(({ state, absentSinceMs }) => [
      ...(state.status === 'failed' && state.retryAtMs !== undefined ? [state.retryAtMs] : []),
      ...(absentSinceMs === undefined ? [] : [absentSinceMs + this.#config.unloadAfterMs]),
    ]);
    if (dueMs.length === 0 || this.#over.signal.aborted) return;
    this.#cancelWake = clock.after(
      Math.max(0, Math.min(...dueMs) - clock.monotonicMs()),
      () => void this.#work(),
    );
  }
}

/** What is known of a version goes on, unless it was published again after it had failed. */
function entryOf(version: CataloguedModel, known: Entry | undefined): Entry {
  const isSame = known !== undefined && known.version.model.digest === version.model.digest;
  const isTriedAgain = known?.state.status === 'failed' && version.publication > known.version.publication;
  const state = isSame && !isTriedAgain ? known.state : ({ status: 'waiting' } as const);
  return { version, state, absentSinceMs: undefined };
}

/** Resolves with the work, or when it has taken too long. */
async function within(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.after(ms, resolve);
    void work.finally(() => {
      cancel();
      resolve();
    });
  });
}
