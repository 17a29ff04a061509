import type { PoolStatus } from '../../contracts/records.ts';
import { nextSlotMove, type SlotHolder } from '../../core/routing/slot-shares.ts';
import type { Reader } from '../../ports/message-bus.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';
import type { HeldSlots } from './held-slots.ts';

export interface SlotSharingConfig {
  worker: string;
  pool: string;
  slotsMax: number;
  heartbeatMs: number;
}

/** A worker that missed so many heartbeats in a row holds nothing. */
const HEARTBEATS_MISSED = 5;

/**
 * Keeps a worker's share of its pool's slots, by what the heartbeats of all say. A slot has one owner whatever they say: its group sees to that, and
 * who claimed what another got leaves again.
 */
export class SlotSharing {
  readonly #config: SlotSharingConfig;
  readonly #deps: StageDeps;
  readonly #slots: HeldSlots;
  /** Whether this worker has anything to run; without that it holds nothing. */
  readonly #canServe: () => boolean;
  /** Called when a slot is being left, before it drains: routers stop sending there. */
  readonly #onLeaving: () => void;
  readonly #heard = new Map<string, { slots: readonly number[]; sharesSlots: boolean; atMs: number }>();
  readonly #openedMs: number;
  #isMoving = false;
  #isClosed = false;
  #reader: Reader | undefined;
  #cancel: (() => void) | undefined;

  constructor(
    config: SlotSharingConfig,
    deps: StageDeps,
    slots: HeldSlots,
    { canServe, onLeaving }: { canServe: () => boolean; onLeaving: () => void },
  ) {
    this.#config = config;
    this.#deps = deps;
    this.#slots = slots;
    this.#canServe = canServe;
    this.#onLeaving = onLeaving;
    this.#openedMs = deps.clock.monotonicMs();
  }

  async start(): Promise<void> {
    this.#reader = await follow(this.#deps, 'pool-status', 'PoolStatus', (status) => this.#hear(status), {
      gone: (worker) => this.#heard.delete(worker),
    });
    this.#cancel = this.#deps.clock.every(this.#config.heartbeatMs, () => void this.#tick());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#reader?.close();
  }

  #hear(status: PoolStatus): void {
    const { pool, worker, slots } = status;
    if (pool !== this.#config.pool) return;
    // Whoever has nothing to run claims nothing: a share that were kept for it would stay vacant.
    const sharesSlots = slots.length > 0 || hasModel(status);
    this.#heard.set(worker, { slots, sharesSlots, atMs: this.#deps.clock.monotonicMs() });
  }

  async #tick(): Promise<void> {
    const { clock, telemetry } = this.#deps;
    const staleMs = this.#config.heartbeatMs * HEARTBEATS_MISSED;
    const nowMs = clock.monotonicMs();
    for (const [worker, { atMs }] of this.#heard) if (nowMs - atMs > staleMs) this.#heard.delete(worker);
    // Whoever does not hear itself does not hear others either, and would take all their slots for vacant.
    const hears = this.#heard.has(this.#config.worker) && nowMs - this.#openedMs > staleMs;
    if (this.#isMoving || this.#isClosed || !hears) return;
    this.#isMoving = true;
    try {
      await this.#move();
    } catch (error) {
      telemetry.logger.warn({ pool: this.#config.pool, error: String(error) }, 'a slot is tried again');
    } finally {
      this.#isMoving = false;
    }
  }

  async #move(): Promise<void> {
    const { pool, worker, slotsMax } = this.#config;
    const { bus, topics, telemetry } = this.#deps;
    if (!this.#canServe()) return this.#leaveAll();
    const slots = await bus.partitionCount(topics.dispatch(pool));
    if (this.#isClosed) return;
    const others = this.#others();
    const lost = this.#lostTo(others);
    if (lost !== undefined) return this.#slots.leave(lost);
    const own: SlotHolder = { worker, slots: this.#slots.wanted() };
    const move = nextSlotMove({ own, others, slots, slotsMax });
    if (move === undefined) return;
    if ('claim' in move) {
      telemetry.logger.info({ pool, slot: move.claim }, 'claims a slot that nobody holds');
      return this.#slots.join(move.claim);
    }
    telemetry.logger.info({ pool, slot: move.release }, 'lets go of a slot: others have less');
    const left = this.#slots.leave(move.release);
    this.#onLeaving();
    return left;
  }

  async #leaveAll(): Promise<void> {
    const wanted = this.#slots.wanted();
    // Nobody sends there: heartbeats have not told of a model for a while.
    await Promise.all(wanted.map((slot) => this.#slots.leave(slot)));
  }

  #others(): SlotHolder[] {
    return [...this.#heard]
      .filter(([worker, { sharesSlots }]) => sharesSlots && worker !== this.#config.worker)
      .map(([worker, { slots }]) => ({ worker, slots }));
  }

  /** A slot whose group gave it to another. */
  #lostTo(others: readonly SlotHolder[]): number | undefined {
    const owned = new Set(this.#slots.owned());
    const theirs = new Set(others.flatMap(({ slots }) => slots));
    return this.#slots.wanted().find((slot) => !owned.has(slot) && theirs.has(slot));
  }
}

function hasModel({ models, published }: PoolStatus): boolean {
  return models.length > 0 || published.some(({ status }) => status === 'READY');
}
