import { type MetricReading, readingOf } from '../../core/rollout/metric-reading.ts';
import type { MetricsQuery } from '../../ports/metrics-query.ts';

/** Metrics that whoever holds them sets; a query is looked up, not understood. */
export interface MemoryMetrics extends MetricsQuery {
  /** One value per series from now on; a query that was never set has none. */
  set(query: string, values: readonly number[]): void;
  /** The query fails from now on, with this reason. */
  fail(query: string, reason: string): void;
}

export function memoryMetrics(): MemoryMetrics {
  const readings = new Map<string, MetricReading>();
  return {
    set: (query, values) => readings.set(query, readingOf(values)),
    fail: (query, reason) => readings.set(query, { failed: reason }),
    read: async (query) => readings.get(query) ?? readingOf([]),
  };
}
