import type { MetricGuardrail } from '../../core/policy/document.ts';
import type { MetricReading } from '../../core/rollout/metric-reading.ts';
import type { MetricsQuery } from '../../ports/metrics-query.ts';

type Readings = Readonly<Record<string, MetricReading>>;

/** Polls the queries of each rollout's guardrails beside the controller's own work, which a slow answer must not hold up. */
export class MetricPoller {
  readonly #query: MetricsQuery;
  /** By scope: what was read since the last look. */
  readonly #read = new Map<string, Readings>();
  readonly #reading = new Set<string>();

  constructor(query: MetricsQuery) {
    this.#query = query;
  }

  /** What was read since the last call, which began to read it; nothing at the first. */
  take(scope: string, queries: readonly MetricGuardrail[]): Readings {
    const readings = this.#read.get(scope) ?? {};
    this.#read.delete(scope);
    if (queries.length > 0 && !this.#reading.has(scope)) void this.#poll(scope, queries);
    return readings;
  }

  async #poll(scope: string, queries: readonly MetricGuardrail[]): Promise<void> {
    this.#reading.add(scope);
    const readings = await Promise.all(
      queries.map(async ({ name, query }) => [name, await this.#query.read(query)] as const),
    );
    this.#read.set(scope, Object.fromEntries(readings));
    this.#reading.delete(scope);
  }
}
