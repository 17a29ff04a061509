import { compareVersions } from './choose.ts';
import { KnownWorkers } from './known-workers.ts';
import { SCORE_RULES } from './router-score.ts';
import { type Outstanding, Slot, type SlotAck, type WorkerStatus } from './slot.ts';
import type { WorkerBacklog } from './worker-backlog.ts';

export interface FleetStateOptions {
  /** A worker whose last heartbeat is older gets no new work. */
  statusStaleMs: number;
  /** Upper bound of outstanding dispatches per slot. */
  creditsMax: number;
}

const NO_SLOTS: readonly Slot[] = [];

const SERVICE_DECAY = 0.99;

/**
 * The slots that live workers hold, built from heartbeats and acknowledgements. A slot belongs to the worker that claimed it
 * last; a heartbeat that comes after a later one of the same incarnation changes nothing.
 */
export class FleetState {
  readonly #options: FleetStateOptions;
  readonly #pools = new Map<string, Map<number, Slot>>();
  /** The same by pool as lists, for the hot path. */
  readonly #lists = new Map<string, Slot[]>();
  readonly #workers: KnownWorkers;
  /** Of this router's dispatches, decayed mean, ms. */
  #serviceMs = 0;

  constructor(options: FleetStateOptions) {
    this.#options = options;
    this.#workers = new KnownWorkers(options.statusStaleMs);
  }

  get heardOfWorkers(): boolean {
    return this.#pools.size > 0;
  }

  applyStatus(status: WorkerStatus, nowMs: number): void {
    const backlog = this.#workers.heard(status, nowMs);
    if (backlog === undefined) return;
    const kept = {
      ...status,
      models: status.models.toSorted((a, b) => compareVersions(b.version, a.version)),
    };
    const slots = this.#poolSlots(status.pool);
    for (const partition of status.slots) this.#claim(slots, partition, kept, backlog, nowMs);
    const held = new Set(status.slots);
    for (const slot of slots.values()) {
      if (slot.status.worker === status.worker && !held.has(slot.partition))
        slot.statusAtMs = Number.NEGATIVE_INFINITY;
    }
  }

  /** The worker said good-bye (its record was tombstoned). */
  removeWorker(worker: string, nowMs: number): void {
    this.#workers.remove(worker, nowMs);
    for (const slots of this.#pools.values()) {
      for (const slot of slots.values())
        if (slot.status.worker === worker) slot.statusAtMs = Number.NEGATIVE_INFINITY;
    }
  }

  /**
   * Gives back the credits of what ended; the rest of the acknowledgement counts only where it comes from whoever is known to hold
   * the slot. A new holder acknowledges what it inherited before its first heartbeat is heard.
   * @returns whether there may be room now.
   */
  applyAck(ack: SlotAck, nowMs: number): boolean {
    const slot = this.#pools.get(ack.pool)?.get(ack.slot);
    if (slot === undefined) return false;
    const ended = slot.complete(ack, nowMs);
    if (slot.status.incarnation !== ack.incarnation) return ended > 0;
    slot.observe(ack, nowMs);
    return true;
  }

  recordDispatch(slot: Slot, entry: Outstanding): void {
    slot.dispatch(entry);
    const serviceMs = entry.predictedMs / slot.backlog.speed;
    const kept = this.#serviceMs === 0 ? 0 : SERVICE_DECAY;
    this.#serviceMs = kept * this.#serviceMs + (1 - kept) * serviceMs;
  }

  /** What a worker of another router is worse by, ms: some services of this router's requests. */
  get foreignPenaltyMs(): number {
    return SCORE_RULES.foreignPenaltyServices * this.#serviceMs;
  }

  /** Deals the workers anew. @param routers those that are there, `own` among them or not */
  routersAre(own: string, routers: readonly string[], nowMs: number): void {
    this.#workers.routersAre(own, routers, nowMs);
  }

  /** Workers that are remembered. */
  get workers(): number {
    return this.#workers.size;
  }

  /** All slots of a pool that were ever claimed; `isLive` says which of them count. */
  slotsOf(pool: string): readonly Slot[] {
    return this.#lists.get(pool) ?? NO_SLOTS;
  }

  /** Whether the slot's worker was heard of lately. */
  isLive(slot: Slot, nowMs: number): boolean {
    return nowMs - slot.statusAtMs <= this.#options.statusStaleMs;
  }

  /** Of a pool's first `count` slots, those that no live worker holds. */
  unheldSlots(pool: string, count: number, nowMs: number): number[] {
    const held = new Set(
      this.slotsOf(pool)
        .filter((slot) => this.isLive(slot, nowMs))
        .map(({ partition }) => partition),
    );
    return Array.from({ length: count }, (_, slot) => slot).filter((slot) => !held.has(slot));
  }

  *allSlots(): Iterable<Slot> {
    for (const slots of this.#pools.values()) yield* slots.values();
  }

  /** Gives up dispatches that nobody waits for, and forgets workers that fell silent long ago without a good-bye. */
  sweep(nowMs: number): number {
    this.#workers.forgetSilent(nowMs);
    let swept = 0;
    for (const slot of this.allSlots()) swept += slot.sweep(nowMs);
    return swept;
  }

  #poolSlots(pool: string): Map<number, Slot> {
    const known = this.#pools.get(pool);
    if (known !== undefined) return known;
    const slots = new Map<number, Slot>();
    this.#pools.set(pool, slots);
    return slots;
  }

  #claim(
    slots: Map<number, Slot>,
    partition: number,
    status: WorkerStatus,
    backlog: WorkerBacklog,
    nowMs: number,
  ): void {
    const slot = slots.get(partition);
    if (slot === undefined) {
      const fresh = new Slot(status.pool, partition, status, backlog, this.#options.creditsMax, nowMs);
      fresh.credits.observe(status.batchRequests, 0, 1);
      slots.set(partition, fresh);
      const list = this.#lists.get(status.pool);
      if (list === undefined) this.#lists.set(status.pool, [fresh]);
      else list.push(fresh);
      return;
    }
    if (slot.backlog !== backlog) slot.takenOver(backlog, nowMs);
    slot.status = status;
    slot.statusAtMs = nowMs;
  }
}
