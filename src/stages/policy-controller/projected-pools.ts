import { NO_WORKER_UTILISATION } from '../../core/rollout/projection.ts';

/** Of the windows in which a pool should have worked: with fewer that had nobody, those had only not been heard of for a moment. */
const UNSERVED_SHARE_MIN = 0.5;

interface PoolSum {
  sum: number;
  /** Windows in which no live worker could have done the work. */
  unserved: number;
  /** All windows that name the pool. */
  named: number;
}

/** What one router's windows project for each pool, were all traffic the candidate's. */
export class ProjectedPools {
  readonly #pools = new Map<string, PoolSum>();
  #windows = 0;

  take(utilisation: Readonly<Record<string, number>>): void {
    this.#windows += 1;
    for (const [pool, share] of Object.entries(utilisation)) {
      const known = this.#pools.get(pool) ?? { sum: 0, unserved: 0, named: 0 };
      const isUnserved = share >= NO_WORKER_UTILISATION;
      this.#pools.set(pool, {
        sum: known.sum + (isUnserved ? 0 : share),
        unserved: known.unserved + (isUnserved ? 1 : 0),
        named: known.named + 1,
      });
    }
  }

  /** Mean utilisation by pool, over the windows that had somebody to work; `NO_WORKER_UTILISATION` where most that needed somebody had nobody. */
  *means(): Generator<readonly [pool: string, utilisation: number]> {
    for (const [pool, { sum, unserved, named }] of this.#pools) {
      const isUnserved = unserved >= UNSERVED_SHARE_MIN * named;
      yield [pool, isUnserved ? NO_WORKER_UTILISATION : sum / (this.#windows - unserved)];
    }
  }
}
