import type { PoolStatus } from '../../contracts/records.ts';
import type { StageDeps } from '../stage.ts';

/** A pool can grow, or its topic be made anew. */
const ASK_AGAIN_MS = 10_000;
/** Sooner where a heartbeat names a slot beyond, or nothing is known. */
const ASK_SOON_MS = 1_000;
/** More pools than a fleet has: others are made up. */
const POOLS_MAX = 1_000;

interface Bound {
  slots: number | undefined;
  askedMs: number;
  /** By worker, what came before the pool's slots were known. */
  readonly waiting: Map<string, PoolStatus>;
}

/**
 * Passes heartbeats on without slots that their pool's topic does not have: whoever sends one that is wrong, or is of a topic that was made anew
 * with fewer partitions, draws no request to where nobody reads.
 */
export class SlotBounds {
  readonly #deps: Pick<StageDeps, 'bus' | 'topics' | 'clock'>;
  readonly #pass: (status: PoolStatus) => void;
  readonly #bounds = new Map<string, Bound>();

  constructor(deps: Pick<StageDeps, 'bus' | 'topics' | 'clock'>, pass: (status: PoolStatus) => void) {
    this.#deps = deps;
    this.#pass = pass;
  }

  take(status: PoolStatus): void {
    const bound = this.#boundOf(status.pool);
    if (bound === undefined) return;
    const { slots } = bound;
    const isBeyond = slots === undefined || status.slots.some((slot) => slot >= slots);
    const sinceMs = this.#deps.clock.monotonicMs() - bound.askedMs;
    if (sinceMs >= (isBeyond ? ASK_SOON_MS : ASK_AGAIN_MS)) void this.#ask(status.pool, bound);
    if (slots === undefined) bound.waiting.set(status.worker, status);
    else this.#pass(isBeyond ? within(status, slots) : status);
  }

  /** How many slots each pool has of which a worker was heard, where it is known. */
  *known(): Iterable<readonly [pool: string, slots: number]> {
    for (const [pool, { slots }] of this.#bounds) if (slots !== undefined) yield [pool, slots];
  }

  /** Before it is known what slots there are, whoever leaves was never passed on. */
  gone(worker: string): void {
    for (const { waiting } of this.#bounds.values()) waiting.delete(worker);
  }

  #boundOf(pool: string): Bound | undefined {
    const known = this.#bounds.get(pool);
    if (known !== undefined || this.#bounds.size >= POOLS_MAX) return known;
    const fresh = { slots: undefined, askedMs: Number.NEGATIVE_INFINITY, waiting: new Map() };
    this.#bounds.set(pool, fresh);
    return fresh;
  }

  async #ask(pool: string, bound: Bound): Promise<void> {
    const { bus, topics, clock } = this.#deps;
    bound.askedMs = clock.monotonicMs();
    try {
      bound.slots = await bus.partitionCount(topics.dispatch(pool));
    } catch {
      // A pool without a topic has no slots; the next heartbeat asks again.
      return;
    }
    for (const status of bound.waiting.values()) this.#pass(within(status, bound.slots));
    bound.waiting.clear();
  }
}

function within(status: PoolStatus, slots: number): PoolStatus {
  return { ...status, slots: status.slots.filter((slot) => slot < slots) };
}
