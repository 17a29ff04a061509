import { MillraceError } from '../../core/errors.ts';
import {
  type ArtefactEntry,
  type ArtefactStore,
  checkGet,
  checkPut,
  type StoredArtefact,
} from '../../ports/artefact-store.ts';
import type { Clock } from '../../ports/clock.ts';
import { within } from '../../ports/within.ts';

/** A store in this process: what embedded runs, simulations and tests use. */
export interface MemoryArtefactStore extends ArtefactStore {
  /** Of all artefacts, without their keys. */
  readonly storedBytes: number;
  /** From now on every answer takes so long. */
  delay(ms: number): void;
  /** From now on every call is refused with STORE_UNAVAILABLE. */
  stop(): void;
  start(): void;
}

interface Kept {
  bytes: Uint8Array;
  untilMs: number;
}

/** @param bytesMax of all artefacts together; what was put first goes first */
export function memoryArtefactStore(
  clock: Pick<Clock, 'monotonicMs' | 'after'>,
  bytesMax: number,
): MemoryArtefactStore {
  return new InMemory(clock, bytesMax);
}

class InMemory implements MemoryArtefactStore {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'after'>;
  readonly #bytesMax: number;
  /** In the order in which they were put. */
  readonly #kept = new Map<string, Kept>();
  #storedBytes = 0;
  #delayMs = 0;
  #isAway = false;

  constructor(clock: Pick<Clock, 'monotonicMs' | 'after'>, bytesMax: number) {
    this.#clock = clock;
    this.#bytesMax = bytesMax;
  }

  get storedBytes(): number {
    return this.#storedBytes;
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  stop(): void {
    this.#isAway = true;
  }

  start(): void {
    this.#isAway = false;
  }

  async getMany(keys: readonly string[], bytesMax: number, limitMs: number): Promise<StoredArtefact[]> {
    checkGet(keys, bytesMax);
    await this.#answer(limitMs);
    return keys.map((key) => this.#get(key, bytesMax));
  }

  async putMany(entries: readonly ArtefactEntry[], ttlMs: number, limitMs: number): Promise<void> {
    checkPut(entries, ttlMs);
    await this.#answer(limitMs);
    for (const { key, bytes } of entries) {
      if (bytes.byteLength > this.#bytesMax)
        throw new MillraceError('STORE_UNAVAILABLE', 'the artefact store is full', {
          value: bytes.byteLength,
          allowed: `at most ${this.#bytesMax} bytes`,
        });
      this.#forget(key);
      this.#makeRoom(bytes.byteLength);
      // Whoever put it may use the memory again.
      this.#kept.set(key, { bytes: bytes.slice(), untilMs: this.#clock.monotonicMs() + ttlMs });
      this.#storedBytes += bytes.byteLength;
    }
  }

  async close(): Promise<void> {
    this.#isAway = true;
  }

  async #answer(limitMs: number): Promise<void> {
    const answer = new Promise<true>((resolve) => this.#clock.after(this.#delayMs, () => resolve(true)));
    const inTime = await within(this.#clock, answer, limitMs, false);
    if (!inTime || this.#isAway)
      throw new MillraceError('STORE_UNAVAILABLE', 'the artefact store did not answer');
  }

  #get(key: string, bytesMax: number): StoredArtefact {
    const kept = this.#kept.get(key);
    if (kept === undefined) return { state: 'missing' };
    if (kept.untilMs <= this.#clock.monotonicMs()) {
      this.#forget(key);
      return { state: 'missing' };
    }
    if (kept.bytes.byteLength > bytesMax) return { state: 'too-long' };
    return { state: 'found', bytes: kept.bytes.slice() };
  }

  #makeRoom(bytes: number): void {
    for (const key of this.#kept.keys()) {
      if (this.#storedBytes + bytes <= this.#bytesMax) return;
      this.#forget(key);
    }
  }

  #forget(key: string): void {
    this.#storedBytes -= this.#kept.get(key)?.bytes.byteLength ?? 0;
    this.#kept.delete(key);
  }
}
