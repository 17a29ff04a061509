import type { Cancel, Clock } from '../../ports/clock.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { HeldSlots } from './held-slots.ts';

export interface FixedSlotsConfig {
  pool: string;
  heartbeatMs: number;
}

export interface FixedSlotsDeps {
  clock: Clock;
  telemetry: Telemetry;
  held: HeldSlots;
  /** Whether this worker has anything to run. */
  canServe(): boolean;
}

/**
 * Is in the groups of the slots that the settings name for as long as the worker can serve. Without a model it would end whatever it takes from them,
 * which another worker of the same slots may be there to compute.
 */
export class FixedSlots {
  readonly #slots: readonly number[];
  readonly #config: FixedSlotsConfig;
  readonly #deps: FixedSlotsDeps;
  #isMoving = false;
  #cancel: Cancel | undefined;

  constructor(slots: readonly number[], config: FixedSlotsConfig, deps: FixedSlotsDeps) {
    this.#slots = slots;
    this.#config = config;
    this.#deps = deps;
  }

  async start(): Promise<void> {
    await this.#move();
    this.#cancel = this.#deps.clock.every(this.#config.heartbeatMs, () => void this.#tick());
  }

  async close(): Promise<void> {
    this.#cancel?.();
  }

  async #tick(): Promise<void> {
    if (this.#isMoving) return;
    this.#isMoving = true;
    try {
      await this.#move();
    } catch (error) {
      const { pool } = this.#config;
      this.#deps.telemetry.logger.warn({ pool, error: String(error) }, 'a slot is tried again');
    } finally {
      this.#isMoving = false;
    }
  }

  async #move(): Promise<void> {
    const { held, canServe } = this.#deps;
    // Where there is none any more nobody sends to them: heartbeats have not told of a model for a while.
    const isHeld = canServe();
    await Promise.all(this.#slots.map((slot) => (isHeld ? held.join(slot) : held.leave(slot))));
  }
}
