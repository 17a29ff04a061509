import { type DestinationStream, pino, stdTimeFunctions } from 'pino';
import {
  collectDefaultMetrics,
  type MetricConfiguration,
  Counter as PromCounter,
  Gauge as PromGauge,
  Histogram as PromHistogram,
  Registry,
} from 'prom-client';
import { MillraceError } from '../../core/errors.ts';
import type {
  Counter,
  Gauge,
  Histogram,
  LogFields,
  Logger,
  MetricDefinition,
  Telemetry,
} from '../../ports/telemetry.ts';
import { type LogDestination, logDestination } from './log-destination.ts';
import { loggedError, loggedText } from './logged-error.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface PrometheusTelemetryOptions {
  /** `service` of every log line. */
  service: string;
  level: LogLevel;
  /** Where log lines go, one JSON object each; standard output by default. */
  destination?: DestinationStream & Partial<LogDestination>;
}

export interface PrometheusTelemetry extends Telemetry {
  /** Every metric, with those of the process, in Prometheus's text format. */
  metricsText(): Promise<string>;
  /** Whether the process may end without waiting for ever for whoever reads its log (`LogDestination.written`). */
  logWritten(withinMs: number): Promise<boolean>;
  /** `Content-Type` of that text. */
  readonly metricsContentType: string;
}

/** Logs as JSON lines by pino, metrics by prom-client in a registry of their own: nothing is global. */
export function prometheusTelemetry(options: PrometheusTelemetryOptions): PrometheusTelemetry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const instruments = new Instruments(registry);
  const tell = (line: string): void => void process.stderr.write(`${options.service}: ${line}\n`);
  const destination: DestinationStream & Partial<LogDestination> =
    options.destination ?? logDestination(tell);
  return {
    logger: createLogger(options, destination),
    logWritten: async (withinMs) => (await destination.written?.(withinMs)) ?? true,
    counter: (definition) => instruments.counter(definition),
    gauge: (definition) => instruments.gauge(definition),
    histogram: (definition) => instruments.histogram(definition),
    metricsText: () => registry.metrics(),
    metricsContentType: registry.contentType,
  };
}

function createLogger(options: PrometheusTelemetryOptions, destination: DestinationStream): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
      serializers: { error: (error: unknown) => loggedError(error) },
    },
    destination,
  );
}

function withoutSecrets(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? loggedText(value) : value,
    ]),
  );
}

class Instruments {
  readonly #registry: Registry;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  counter(definition: MetricDefinition): Counter {
    return once(this.#counters, definition.name, () => {
      const metric = new PromCounter(this.#configuration(definition));
      return {
        add(amount, labels) {
          // prom-client takes NaN, and the counter is none from then on.
          if (!(amount >= 0)) throw new RangeError(`${definition.name} cannot be raised by ${amount}`);
          if (labels === undefined) metric.inc(amount);
          else metric.inc(labels, amount);
        },
      };
    });
  }

  gauge(definition: MetricDefinition): Gauge {
    return once(this.#gauges, definition.name, () => {
      const metric = new PromGauge(this.#configuration(definition));
      return {
        set: (value, labels) => (labels === undefined ? metric.set(value) : metric.set(labels, value)),
      };
    });
  }

  histogram(definition: MetricDefinition & { buckets: readonly number[] }): Histogram {
    return once(this.#histograms, definition.name, () => {
      const metric = new PromHistogram({
        ...this.#configuration(definition),
        buckets: [...definition.buckets],
      });
      return {
        observe: (value, labels) =>
          labels === undefined ? metric.observe(value) : metric.observe(labels, value),
      };
    });
  }

  #configuration(definition: MetricDefinition): MetricConfiguration<string> {
    if (this.#registry.getSingleMetric(definition.name) !== undefined) {
      throw new MillraceError('INVALID_CONFIG', 'A metric of this name is already defined as another kind', {
        value: definition.name,
        advice: 'Give it a name of its own.',
      });
    }
    return {
      name: definition.name,
      help: definition.help,
      labelNames: definition.labels ?? [],
      registers: [this.#registry],
    };
  }
}

function once<T>(instruments: Map<string, T>, name: string, create: () => T): T {
  const known = instruments.get(name);
  if (known !== undefined) return known;
  const created = create();
  instruments.set(name, created);
  return created;
}
