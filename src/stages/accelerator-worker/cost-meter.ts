import { CostMomentSum } from '../../core/signals/cost-moments.ts';
import type { BatchResult, LoadedModel } from '../../ports/accelerator.ts';
import type { Counter, Telemetry } from '../../ports/telemetry.ts';

/**
 * What batches took, by version and kernel, as the sums that `millrace profile refit` fits a cost model to. Counters are raised with the windows, not with
 * every batch: fifteen of them would cost more than a small batch's accounting.
 */
export class CostMeter {
  readonly #pool: string;
  readonly #moments: Counter;
  readonly #sums = new Map<string, { labels: Record<string, string>; sum: CostMomentSum }>();

  constructor(pool: string, telemetry: Telemetry) {
    this.#pool = pool;
    this.#moments = telemetry.counter({
      name: 'millrace_cost_moments_total',
      help: 'Sums over batches that a cost model is fitted to, for `millrace profile refit`: batches, sums of features / ms, and of products of two of them / ms², by pool, model, version, kernel and moment.',
      labels: ['pool', 'model', 'version', 'kernel', 'moment'],
    });
  }

  computed({ family, version }: LoadedModel, kernel: string, { shape, computeMs }: BatchResult): void {
    if (shape === undefined) return;
    const key = `${family}@${version} ${kernel}`;
    let found = this.#sums.get(key);
    if (found === undefined) {
      found = { labels: { pool: this.#pool, model: family, version, kernel }, sum: new CostMomentSum() };
      this.#sums.set(key, found);
    }
    found.sum.add(shape, computeMs);
  }

  publish(): void {
    for (const [key, { labels, sum }] of this.#sums) {
      for (const [moment, amount] of sum.take()) this.#moments.add(amount, { ...labels, moment });
      // Versions come and go; the counters stay.
      this.#sums.delete(key);
    }
  }
}
