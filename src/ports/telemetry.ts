/** What a log line may carry: ids and numbers, never payload bytes. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
}

export type LabelValues = Readonly<Record<string, string>>;

export interface Counter {
  /** @throws for an amount below 0, and for a label that the metric was not defined with */
  add(amount: number, labels?: LabelValues): void;
}
export interface Gauge {
  set(value: number, labels?: LabelValues): void;
}
export interface Histogram {
  /** In the base unit of the metric's name: seconds for `_seconds`, bytes for `_bytes`. */
  observe(value: number, labels?: LabelValues): void;
}

export interface MetricDefinition {
  /** Prometheus name with its base unit: `millrace_queue_seconds`, `millrace_results_total`. */
  name: string;
  help: string;
  /** Label names; each must have few values (pool, outcome, …), never one per request. */
  labels?: readonly string[];
}

/**
 * Metrics and logs of one process. Defining a metric again gives an instrument of the same values.
 * @throws MillraceError INVALID_CONFIG where the name is another kind's
 */
export interface Telemetry {
  readonly logger: Logger;
  counter(definition: MetricDefinition): Counter;
  gauge(definition: MetricDefinition): Gauge;
  histogram(definition: MetricDefinition & { buckets: readonly number[] }): Histogram;
}
