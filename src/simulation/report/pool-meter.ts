import type { SimulatedPool } from '../fleet/simulated-fleet.ts';
import { rounded } from './rounded.ts';
import type { PoolSeries, PoolSummary } from './simulation-report.ts';

/** What one worker of a pool says of itself. */
export interface WorkerReading {
  /** Which life it is: in the next one it counts from 0 again. */
  readonly life: object;
  readonly queued: number;
  /** Since its life began. */
  readonly busyMs: number;
}

/** Follows how busy a pool is, by what its workers say at the end of each step. */
export class PoolMeter {
  readonly #pool: SimulatedPool;
  readonly #stepMs: number;
  readonly #queued: number[] = [];
  readonly #workers: number[] = [];
  readonly #utilisation: (number | null)[] = [];
  #before = new Map<object, number>();
  #busyMs = 0;
  #upMs = 0;
  #answered = 0;

  constructor(pool: SimulatedPool, stepMs: number) {
    this.#pool = pool;
    this.#stepMs = stepMs;
  }

  answered(): void {
    this.#answered += 1;
  }

  /** Before the first step. */
  begin(readings: readonly WorkerReading[]): void {
    this.#before = new Map(readings.map(({ life, busyMs }) => [life, busyMs]));
  }

  stepEnded(readings: readonly WorkerReading[]): void {
    const busyMs = readings.reduce((sum, each) => sum + each.busyMs - (this.#before.get(each.life) ?? 0), 0);
    const upMs = readings.length * this.#stepMs;
    this.begin(readings);
    this.#busyMs += busyMs;
    this.#upMs += upMs;
    this.#queued.push(readings.reduce((sum, { queued }) => sum + queued, 0));
    this.#workers.push(readings.length);
    // A batch counts when it ends: a step can have more of it than its own length.
    this.#utilisation.push(upMs === 0 ? null : rounded(Math.min(1, busyMs / upMs)));
  }

  summary(): PoolSummary {
    const { pool, accelerator, capacityClass, region = null, slots } = this.#pool;
    return {
      pool,
      accelerator,
      capacityClass,
      region,
      slots,
      answered: this.#answered,
      utilisation: this.#upMs === 0 ? null : rounded(Math.min(1, this.#busyMs / this.#upMs)),
      queuedMax: this.#queued.reduce((most, queued) => Math.max(most, queued), 0),
    };
  }

  series(): PoolSeries {
    const { pool } = this.#pool;
    return { pool, queued: this.#queued, workers: this.#workers, utilisation: this.#utilisation };
  }
}
