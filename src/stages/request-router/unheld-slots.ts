import type { FleetState } from '../../core/routing/fleet-state.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** Slots change hands within this: an owner that is only replaced is no news. */
const SETTLED_MS = 10_000;

interface Seen {
  readonly slots: readonly number[];
  readonly sinceMs: number;
  /** What the log said last. */
  readonly told: string;
}

const NONE: Pick<Seen, 'slots' | 'told'> = { slots: [], told: '' };

/**
 * Tells of slots that no worker owns. Nothing is sent to them, but what was sent before waits there, and is deleted with its topic's retention:
 * nobody misses it who looks at the traffic alone.
 */
export class UnheldSlots {
  readonly #fleet: Pick<FleetState, 'unheldSlots'>;
  /** How many slots each pool has, where it is known. */
  readonly #pools: () => Iterable<readonly [pool: string, slots: number]>;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #telemetry: Telemetry;
  readonly #gauge: ReturnType<Telemetry['gauge']>;
  readonly #seen = new Map<string, Seen>();

  constructor(
    fleet: Pick<FleetState, 'unheldSlots'>,
    pools: () => Iterable<readonly [pool: string, slots: number]>,
    { clock, telemetry }: { clock: Pick<Clock, 'monotonicMs'>; telemetry: Telemetry },
  ) {
    this.#fleet = fleet;
    this.#pools = pools;
    this.#clock = clock;
    this.#telemetry = telemetry;
    this.#gauge = telemetry.gauge({
      name: 'millrace_slots_without_owner',
      help: 'Slots of a pool that no live worker owns: what is in them waits.',
      labels: ['pool'],
    });
  }

  observe(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [pool, count] of this.#pools()) {
      const slots = this.#fleet.unheldSlots(pool, count, nowMs);
      this.#gauge.set(slots.length, { pool });
      const { told, ...before } = this.#seen.get(pool) ?? { ...NONE, sinceMs: nowMs };
      const isSame = before.slots.join() === slots.join();
      const sinceMs = isSame ? before.sinceMs : nowMs;
      const isNews = told !== slots.join() && nowMs - sinceMs >= SETTLED_MS;
      if (isNews) this.#tell(pool, slots, count);
      this.#seen.set(pool, { slots, sinceMs, told: isNews ? slots.join() : told });
    }
  }

  #tell(pool: string, slots: readonly number[], count: number): void {
    const { logger } = this.#telemetry;
    if (slots.length === 0) logger.info({ pool, of: count }, 'every slot of the pool has an owner again');
    else
      logger.warn(
        { pool, slots, of: count },
        'slots of the pool have no owner: what is in them waits for a worker that has them in worker.slots',
      );
  }
}
