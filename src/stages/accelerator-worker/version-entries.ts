import { makePublishedVersion, type PublishedVersion } from '../../contracts/records.ts';
import type { CataloguedModel } from '../../core/model/catalogue.ts';
import { versionName } from '../../core/model/published-model.ts';
import type { LoadedModel } from '../../ports/accelerator.ts';

/** A version as a catalogue offers it, and why it is not taken from there. */
export interface OfferedVersion {
  readonly version: CataloguedModel;
  readonly refusal: string | undefined;
}

/** A version in the catalogue, or one that left it a while ago. */
export interface VersionEntry {
  readonly version: CataloguedModel;
  /** Whether it was ever offered without a refusal: then its files, and where they lie, are what people published. */
  readonly isTaken: boolean;
  readonly state: VersionState;
  /** When it left the catalogue. */
  readonly absentSinceMs: number | undefined;
}

export type VersionState =
  | { readonly status: 'waiting' | 'loading' }
  /** Undefined where it is a version of the folder. */
  | {
      readonly status: 'ready';
      readonly model: LoadedModel | undefined;
      readonly variant: LoadedModel['variant'];
    }
  | { readonly status: 'failed'; readonly reason: string; readonly retry: Retry };

/**
 * When a version that failed is tried again by itself; once it is published again it always is. `never`: the same files would fail again.
 * `with-room`: once another one may go for it.
 */
export type Retry = 'never' | 'with-room' | { readonly atMs: number };

/** By `family@version`. */
export type VersionEntries = ReadonlyMap<string, VersionEntry>;

/** The files of a version never change: one that is loaded is not taken again with others, whoever signed those. */
export function withoutChanges(
  entries: VersionEntries,
  offered: readonly OfferedVersion[],
): readonly OfferedVersion[] {
  return offered.map(({ version, refusal }) => {
    const known = entries.get(versionName(version.model));
    const isOther = known?.state.status === 'ready' && known.version.model.digest !== version.model.digest;
    const reason = `it is loaded with other files, ${known?.version.model.digest}, and the files of a version never change`;
    return { version, refusal: refusal ?? (isOther ? reason : undefined) };
  });
}

/** After a catalogue came: what is known of a version goes on, and what is not in it any more is absent from now on. */
export function withCatalogue(
  entries: VersionEntries,
  offered: readonly OfferedVersion[],
  nowMs: number,
): Map<string, VersionEntry> {
  const after = new Map<string, VersionEntry>();
  for (const { version, refusal } of offered) {
    const name = versionName(version.model);
    const known = entries.get(name);
    after.set(name, refusal === undefined ? entryOf(version, known) : refusedEntry(version, refusal, known));
  }
  for (const [name, entry] of entries)
    if (!after.has(name)) after.set(name, { ...entry, absentSinceMs: entry.absentSinceMs ?? nowMs });
  return after;
}

/** What is known of a version goes on, unless it was published again after it had failed, or while it is being fetched from where it lay before. */
function entryOf(version: CataloguedModel, known: VersionEntry | undefined): VersionEntry {
  const isSame = known?.isTaken === true && known.version.model.digest === version.model.digest;
  const isUnfinished = known?.state.status === 'failed' || known?.state.status === 'loading';
  const isTriedAgain = isUnfinished && version.publication > known.version.publication;
  const state = isSame && !isTriedAgain ? known.state : ({ status: 'waiting' } as const);
  return { version, isTaken: true, state, absentSinceMs: undefined };
}

/** What was taken goes on as it was: who may write to the store, or a key that was taken out since, changes nothing of it. */
function refusedEntry(
  version: CataloguedModel,
  reason: string,
  known: VersionEntry | undefined,
): VersionEntry {
  if (known?.isTaken === true) return { ...known, absentSinceMs: undefined };
  const state = { status: 'failed', reason, retry: 'never' } as const;
  return { version, isTaken: false, state, absentSinceMs: undefined };
}

/** The absent ones whose time is up: what serves has a while, what does not has none. */
export function versionsToDrop(entries: VersionEntries, nowMs: number, unloadAfterMs: number): string[] {
  return [...entries].flatMap(([name, { absentSinceMs, state }]) => {
    if (absentSinceMs === undefined || state.status === 'loading') return [];
    return state.status !== 'ready' || nowMs - absentSinceMs >= unloadAfterMs ? [name] : [];
  });
}

/** The version to try now: those that a policy names first, then the latest published. */
export function versionToLoad(
  entries: VersionEntries,
  nowMs: number,
  versionsMax: number,
): string | undefined {
  const isDue = (entry: VersionEntry): boolean => {
    const { state } = entry;
    if (state.status !== 'failed') return state.status === 'waiting';
    if (state.retry === 'with-room') return roomFor(entry, entries, versionsMax).status !== 'none';
    return state.retry !== 'never' && state.retry.atMs <= nowMs;
  };
  const due = [...entries].filter(([, entry]) => isDue(entry));
  const urgency = ({ version: { isNamed, publication } }: VersionEntry): number =>
    (isNamed ? 1e12 : 0) + publication;
  return due.sort(([, a], [, b]) => urgency(b) - urgency(a))[0]?.[0];
}

export type Room =
  | { readonly status: 'free' }
  /** Where the version of this name goes for it. */
  | { readonly status: 'in-place-of'; readonly name: string }
  | { readonly status: 'none'; readonly held: number };

/** Whether a worker that holds so many may hold this one too: absent versions go for any, those that no policy names for named and later ones. */
export function roomFor(
  { version: { isNamed, publication } }: VersionEntry,
  entries: VersionEntries,
  versionsMax: number,
): Room {
  const held = [...entries].filter(([, { state }]) => state.status === 'ready' && state.model !== undefined);
  if (held.length < versionsMax) return { status: 'free' };
  const isLess = ({ version, absentSinceMs }: VersionEntry): boolean =>
    absentSinceMs !== undefined || (!version.isNamed && (isNamed || version.publication < publication));
  const [least] = held
    .filter(([, entry]) => isLess(entry))
    .sort(([, a], [, b]) => a.version.publication - b.version.publication);
  return least === undefined
    ? { status: 'none', held: held.length }
    : { status: 'in-place-of', name: least[0] };
}

/** Whether every version that a policy names was loaded or refused. */
export function isSettled(entries: VersionEntries): boolean {
  return ![...entries.values()].some(
    ({ version, state }) => version.isNamed && (state.status === 'waiting' || state.status === 'loading'),
  );
}

/** When there is something to do by itself; undefined where there is nothing. */
export function nextWakeMs(entries: VersionEntries, unloadAfterMs: number): number | undefined {
  const dueMs = [...entries.values()].flatMap(({ state, absentSinceMs }) => [
    ...(state.status === 'failed' && typeof state.retry === 'object' ? [state.retry.atMs] : []),
    ...(absentSinceMs === undefined ? [] : [absentSinceMs + unloadAfterMs]),
  ]);
  return dueMs.length === 0 ? undefined : Math.min(...dueMs);
}

/** What heartbeats say: of those in the catalogue only. */
export function statusesOf(entries: VersionEntries): PublishedVersion[] {
  return [...entries.values()]
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
