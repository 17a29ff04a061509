import { Buffer } from 'node:buffer';
import type { KeyObject } from 'node:crypto';
import type { ArtefactEntry, ArtefactStore, StoredArtefact } from '../../ports/artefact-store.ts';
import type { Clock } from '../../ports/clock.ts';
import { within } from '../../ports/within.ts';
import {
  type ArtefactIdentity,
  type ArtefactRefusal,
  artefactBytesMax,
  decodeArtefact,
  encodeArtefact,
  type LayerInput,
  type LayerTensor,
} from './artefact-codec.ts';

/** What came of looking for an artefact: but for a hit, the request's side is computed. */
export type FindOutcome = 'hit' | Exclude<StoredArtefact['state'], 'found'> | ArtefactRefusal | 'unavailable';

/** `dropped`: too long to be kept, or too many were on their way. */
export type KeepOutcome = 'kept' | 'dropped' | 'unavailable';

export interface KeptArtefactsDeps {
  store: ArtefactStore;
  clock: Pick<Clock, 'after'>;
  /** Shared by the workers that keep artefacts for each other, and known to nobody else. */
  secret: KeyObject;
  ttlMs: number;
  onFind(outcome: FindOutcome): void;
  onKeep(outcome: KeepOutcome): void;
}

export interface MadeArtefact {
  identity: ArtefactIdentity;
  tensors: readonly LayerTensor[];
}

/** On their way to a store; what is made while it is slow is dropped. */
const BYTES_UNDER_WAY_MAX = 8 * 1024 * 1024;
/** Nobody waits for it; it frees its place by then. */
const KEEP_LIMIT_MS = 1_000;

/** Artefacts in a store that nobody relies on: whatever becomes of it, each request has an artefact that is its own, or none. */
export class KeptArtefacts {
  readonly #deps: KeptArtefactsDeps;
  #bytesUnderWay = 0;

  constructor(deps: KeptArtefactsDeps) {
    this.#deps = deps;
  }

  /**
   * @param layout of the model that all of them are of
   * @param limitMs settles by then, whatever the store does
   * @returns by position; undefined for a request whose side is to be computed. Never rejects.
   */
  async find(
    identities: readonly ArtefactIdentity[],
    layout: readonly LayerInput[],
    limitMs: number,
  ): Promise<(LayerTensor[] | undefined)[]> {
    const { store, clock, secret, onFind } = this.#deps;
    const keys = identities.map(keyOf);
    const reading = reached(() => store.getMany(keys, artefactBytesMax(layout), limitMs));
    const stored = await within(clock, reading, limitMs, undefined);
    return identities.map((identity, k) => {
      const found = outcomeOf(stored?.[k], identity, layout, secret);
      onFind(typeof found === 'string' ? found : 'hit');
      return typeof found === 'string' ? undefined : found;
    });
  }

  /** Once the answers are out. Returns at once. */
  keep(artefacts: readonly MadeArtefact[]): void {
    const { onKeep } = this.#deps;
    const entries: ArtefactEntry[] = [];
    let bytes = 0;
    for (const artefact of artefacts) {
      const encoded = this.#encoded(artefact);
      if (encoded === undefined || this.#bytesUnderWay + bytes + encoded.length > BYTES_UNDER_WAY_MAX) {
        onKeep('dropped');
        continue;
      }
      bytes += encoded.length;
      entries.push({ key: keyOf(artefact.identity), bytes: encoded });
    }
    if (entries.length > 0) void this.#put(entries, bytes);
  }

  #encoded({ identity, tensors }: MadeArtefact): Buffer | undefined {
    try {
      return encodeArtefact(identity, tensors, this.#deps.secret);
    } catch {
      // Longer than any store takes: this model's are, and each is counted.
      return undefined;
    }
  }

  async #put(entries: readonly ArtefactEntry[], bytes: number): Promise<void> {
    const { store, clock, ttlMs, onKeep } = this.#deps;
    this.#bytesUnderWay += bytes;
    const putting = reached(() => store.putMany(entries, ttlMs, KEEP_LIMIT_MS).then(() => true));
    const isKept = await within(clock, putting, KEEP_LIMIT_MS, undefined);
    this.#bytesUnderWay -= bytes;
    for (const _ of entries) onKeep(isKept === true ? 'kept' : 'unavailable');
  }
}

function outcomeOf(
  stored: StoredArtefact | undefined,
  identity: ArtefactIdentity,
  layout: readonly LayerInput[],
  secret: KeyObject,
): LayerTensor[] | Exclude<FindOutcome, 'hit'> {
  if (stored === undefined) return 'unavailable';
  return stored.state === 'found' ? decodeArtefact(stored.bytes, identity, layout, secret) : stored.state;
}

function keyOf({ key }: ArtefactIdentity): string {
  return Buffer.from(key).toString('hex');
}

/** Undefined where the store failed, in whichever way. */
async function reached<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}
