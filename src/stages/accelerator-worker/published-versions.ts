import type { PublishedVersion } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import { type PublishedModel, versionName } from '../../core/model/published-model.ts';
import type { Accelerator, LoadedModel } from '../../ports/accelerator.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import type { ModelLibrary } from '../../ports/model-library.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { SignatureTrust } from '../signature-trust.ts';
import { CatalogueSource } from './catalogue-source.ts';
import type { LoadedVersions } from './loaded-versions.ts';
import { tellRefusedKernels } from './refused-kernels.ts';
import { canPass, tryAgainMs } from './try-again.ts';
import { type UnloadDeps, unload } from './unload.ts';
import {
  isSettled,
  nextWakeMs,
  type OfferedVersion,
  type Retry,
  type Room,
  roomFor,
  statusesOf,
  type VersionEntry,
  type VersionState,
  versionsToDrop,
  versionToLoad,
  withCatalogue,
  withoutChanges,
} from './version-entries.ts';

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
  /** Whom versions are taken from; from anybody where it is left out. */
  trust?: SignatureTrust | undefined;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Whether any request here still waits for this model, or is computed by it. */
  inUse(model: LoadedModel): boolean;
  /** Called when what `statuses` answers is something else. */
  onChange(): void;
}

/** A store that does not answer holds up nobody's start for longer. */
const STORE_WAIT_MS = 500;
/** Nor does a source: until then requests that name a version are answered by another. */
const START_WAIT_MS = 30_000;
const REASON_LENGTH_MAX = 400;

/**
 * Has ready what the catalogue of published versions says: fetches a version, loads it beside those that serve, and reports whether that worked. Of
 * a version that fails the reason is reported, and nothing else changes. One version at a time, those that a policy names first.
 */
export class PublishedVersions {
  readonly #config: PublishedVersionsConfig;
  readonly #deps: PublishedVersionsDeps;
  readonly #source: CatalogueSource;
  readonly #over = new AbortController();
  #entries = new Map<string, VersionEntry>();
  /** By version: what the log has of its last refusal. */
  readonly #told = new Map<string, string>();
  /** By version: how often in a row a publication of it failed. */
  readonly #failures = new Map<string, { publication: number; count: number }>();
  /** Ends the fetch under way. */
  #fetching: { name: string; publication: number; over: AbortController } | undefined;
  #working = false;
  #serves = false;
  #cancelWake: Cancel | undefined;
  #onSettled: () => void = () => undefined;

  constructor(config: PublishedVersionsConfig, deps: PublishedVersionsDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#source = new CatalogueSource({
      ...deps,
      apply: (versions, origin) => this.#apply(versions, origin),
      onEpoch: () => deps.onChange(),
    });
  }

  /** Epoch of the catalogue that is followed; 0 before there is one. */
  get epoch(): number {
    return this.#source.epoch;
  }

  /** Resolves when every version that a policy names was loaded or refused, or was waited for long enough. */
  async start(): Promise<void> {
    const { clock } = this.#deps;
    await this.#source.restore();
    await within(clock, STORE_WAIT_MS, this.#source.start());
    const settled = new Promise<void>((resolve) => {
      this.#onSettled = resolve;
      this.#tellIfSettled();
    });
    await within(clock, START_WAIT_MS, settled);
    this.#serves = true;
  }

  /** For heartbeats. */
  statuses(): PublishedVersion[] {
    return statusesOf(this.#entries);
  }

  async close(): Promise<void> {
    this.#over.abort();
    this.#cancelWake?.();
    await this.#source.close();
  }

  #apply(catalogue: readonly OfferedVersion[], origin: 'store' | 'kept'): void {
    const { clock, library } = this.#deps;
    const offered = withoutChanges(this.#entries, catalogue);
    this.#entries = withCatalogue(this.#entries, offered, clock.monotonicMs());
    const fetching = this.#fetching;
    const wanted = fetching === undefined ? undefined : this.#entries.get(fetching.name)?.version.publication;
    if (fetching?.publication !== wanted) fetching?.over.abort();
    for (const { version, refusal } of offered)
      if (refusal !== undefined)
        this.#tell(versionName(version.model), version.publication, refusal, 'never');
    this.#deps.onChange();
    // Others that share the folder may know more than the catalogue that was kept.
    if (origin === 'store')
      void library.retain([...this.#entries.values()].map(({ version }) => version.model));
    void this.#work();
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
    for (const name of versionsToDrop(this.#entries, nowMs, this.#config.unloadAfterMs)) this.#drop(name);
    return versionToLoad(this.#entries, nowMs, this.#config.versionsMax);
  }

  async #load(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const { model, publication } = entry.version;
    this.#setState(name, { status: 'loading' });
    const { loaded } = this.#deps;
    const over = new AbortController();
    this.#fetching = { name, publication, over };
    const isOver = AbortSignal.any([this.#over.signal, over.signal]);
    const { family, version } = model;
    const own = loaded.folder.find((known) => known.family === family && known.version === version);
    try {
      if (own === undefined) await this.#loadBesides(name, entry, isOver);
      else {
        await this.#deps.library.fetch(model, isOver);
        this.#setState(name, { status: 'ready', model: undefined, variant: own.variant });
      }
    } catch (error) {
      // Published again meanwhile: it waits for its turn, and is fetched from where it lies now.
      if (this.#isWanted(name, model) && !over.signal.aborted) this.#fail(name, error);
    } finally {
      this.#fetching = undefined;
    }
  }

  async #loadBesides(name: string, entry: VersionEntry, isOver: AbortSignal): Promise<void> {
    const { library, loaded, backend, telemetry } = this.#deps;
    const { model } = entry.version;
    const before = this.#roomFor(entry);
    if (before.status === 'none') return this.#refuseForRoom(name, before);
    await library.fetch(model, isOver);
    const fresh = await backend.load(model.family, model.version, { besideOthers: this.#serves });
    // A catalogue may have come meanwhile.
    if (!this.#isWanted(name, model)) return fresh.unload();
    const room = this.#roomFor(this.#entries.get(name) ?? entry);
    if (room.status === 'none') {
      await fresh.unload();
      return this.#refuseForRoom(name, room);
    }
    if (room.status === 'in-place-of') this.#drop(room.name);
    loaded.add(fresh);
    this.#setState(name, { status: 'ready', model: fresh, variant: fresh.variant });
    this.#told.delete(name);
    this.#failures.delete(name);
    telemetry.logger.info({ model: name, digest: model.digest }, 'a published version is ready');
    tellRefusedKernels(fresh, telemetry.logger);
  }

  /** Whether it is still these files that are wanted under the name. */
  #isWanted(name: string, { digest }: PublishedModel): boolean {
    return this.#entries.get(name)?.version.model.digest === digest;
  }

  #roomFor(entry: VersionEntry): Room {
    return roomFor(entry, this.#entries, this.#config.versionsMax);
  }

  #fail(name: string, error: unknown): void {
    const retry = canPass(error) ? { atMs: this.#deps.clock.monotonicMs() + this.#waitMs(name) } : 'never';
    this.#refuse(name, error instanceof Error ? error.message : String(error), retry);
  }

  /** Until the next try of a version that failed just now. */
  #waitMs(name: string): number {
    const publication = this.#entries.get(name)?.version.publication ?? 0;
    const known = this.#failures.get(name);
    const count = known?.publication === publication ? known.count + 1 : 1;
    this.#failures.set(name, { publication, count });
    return tryAgainMs(count, this.#deps.random);
  }

  #refuseForRoom(name: string, { held }: Extract<Room, { status: 'none' }>): void {
    const allowed = `${this.#config.versionsMax} (worker.modelVersionsMax)`;
    const error = new MillraceError('MODEL_UNAVAILABLE', `this worker holds ${held} published versions`, {
      allowed,
    });
    this.#refuse(name, error.message, 'with-room');
  }

  #refuse(name: string, reason: string, retry: Retry): void {
    const entry = this.#entries.get(name);
    if (entry === undefined || this.#over.signal.aborted) return;
    this.#setState(name, { status: 'failed', reason: reason.slice(0, REASON_LENGTH_MAX), retry });
    this.#tell(name, entry.version.publication, reason, retry);
  }

  /** Once for each publication and reason, however often it is tried. */
  #tell(name: string, publication: number, reason: string, retry: Retry): void {
    const told = `${publication} ${reason}`;
    if (this.#told.get(name) === told) return;
    this.#told.set(name, told);
    const { logger } = this.#deps.telemetry;
    logger.error({ model: name, reason, retry }, 'a published version is refused; what was loaded stays');
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    this.#told.delete(name);
    this.#failures.delete(name);
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

  #setState(name: string, state: VersionState): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.set(name, { ...entry, state });
    this.#deps.onChange();
    this.#tellIfSettled();
  }

  #tellIfSettled(): void {
    if (isSettled(this.#entries)) this.#onSettled();
  }

  #wakeInTime(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    const dueMs = nextWakeMs(this.#entries, this.#config.unloadAfterMs);
    if (dueMs === undefined || this.#over.signal.aborted) return;
    const { clock } = this.#deps;
    this.#cancelWake = clock.after(Math.max(0, dueMs - clock.monotonicMs()), () => void this.#work());
  }
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
