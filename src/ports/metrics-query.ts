import type { MetricReading } from '../core/rollout/metric-reading.ts';

/** Asks a store of metrics for a query's value now (Prometheus, or memory). */
export interface MetricsQuery {
  /**
   * Never rejects, and answers within the time that it was made with: whatever goes wrong is a reading that failed, with its reason, since it goes
   * into the log as it is.
   *
   * @param query PromQL of an instant vector or a scalar
   */
  read(query: string): Promise<MetricReading>;
}
