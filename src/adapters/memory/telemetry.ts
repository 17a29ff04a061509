import { MillraceError } from '../../core/errors.ts';
import type {
  Counter,
  Gauge,
  Histogram,
  LabelValues,
  LogFields,
  Logger,
  MetricDefinition,
  Telemetry,
} from '../../ports/telemetry.ts';

export interface LogEntry {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  /** Those of the parents, then the line's own. */
  fields: LogFields;
}

export interface Observations {
  count: number;
  sum: number;
  min: number;
  max: number;
}

/** Telemetry that prints nothing and can be read back. */
export interface SilentTelemetry extends Telemetry {
  /** A counter's sum or a gauge's last value under exactly these labels; 0 where there is none. */
  value(name: string, labels?: LabelValues): number;
  /** A counter's sum over all its labels. */
  total(name: string): number;
  /** What a histogram saw under exactly these labels. */
  observations(name: string, labels?: LabelValues): Observations;
  /** The newest lines, at most 1 000. */
  readonly logs: readonly LogEntry[];
}

const LOGS_MAX = 1_000;

export function silentTelemetry(): SilentTelemetry {
  const values = new LabelledValues<number>();
  const observed = new LabelledValues<Observations>();
  const logs: LogEntry[] = [];
  const definitions = new Definitions();
  return {
    logger: recordingLogger(logs, {}),
    counter: (definition): Counter => {
      const { name, check } = definitions.define('counter', definition);
      return {
        add(amount, labels) {
          check(labels);
          if (!(amount >= 0)) throw new RangeError(`${name} cannot be raised by ${amount}`);
          values.update(name, labels, (sum = 0) => sum + amount);
        },
      };
    },
    gauge: (definition): Gauge => {
      const { name, check } = definitions.define('gauge', definition);
      return {
        set(value, labels) {
          check(labels);
          values.update(name, labels, () => value);
        },
      };
    },
    histogram: (definition): Histogram => {
      const { name, check } = definitions.define('histogram', definition);
      return {
        observe(value, labels) {
          check(labels);
          observed.update(name, labels, (before) => include(before, value));
        },
      };
    },
    value: (name, labels) => values.get(name, labels) ?? 0,
    total: (name) => values.all(name).reduce((sum, value) => sum + value, 0),
    observations: (name, labels) => observed.get(name, labels) ?? NONE,
    logs,
  };
}

/** What is defined, so that what a real registry refuses fails here too. */
class Definitions {
  readonly #known = new Map<string, { kind: string; labels: Set<string> }>();

  define(
    kind: string,
    { name, labels = [] }: MetricDefinition,
  ): { name: string; check(labels: LabelValues | undefined): void } {
    const known = this.#known.get(name) ?? { kind, labels: new Set(labels) };
    this.#known.set(name, known);
    if (known.kind !== kind)
      throw new MillraceError('INVALID_CONFIG', 'A metric of this name is already defined as another kind', {
        value: name,
        advice: 'Give it a name of its own.',
      });
    return {
      name,
      check(given = {}) {
        for (const label of Object.keys(given))
          if (!known.labels.has(label))
            throw new RangeError(`${name} was defined without the label ${label}`);
      },
    };
  }
}

const NONE: Observations = { count: 0, sum: 0, min: Infinity, max: -Infinity };

function include(before: Observations = NONE, value: number): Observations {
  return {
    count: before.count + 1,
    sum: before.sum + value,
    min: Math.min(before.min, value),
    max: Math.max(before.max, value),
  };
}

class LabelledValues<T> {
  readonly #byName = new Map<string, Map<string, T>>();

  update(name: string, labels: LabelValues | undefined, change: (before: T | undefined) => T): void {
    let byLabels = this.#byName.get(name);
    if (byLabels === undefined) {
      byLabels = new Map();
      this.#byName.set(name, byLabels);
    }
    const key = labelKey(labels);
    byLabels.set(key, change(byLabels.get(key)));
  }

  get(name: string, labels: LabelValues | undefined): T | undefined {
    return this.#byName.get(name)?.get(labelKey(labels));
  }

  all(name: string): T[] {
    return [...(this.#byName.get(name)?.values() ?? [])];
  }
}

/** The same for the same labels in any order. */
function labelKey(labels: LabelValues = {}): string {
  const names = Object.keys(labels);
  if (names.length > 1) names.sort();
  return names.map((name) => `${name}=${labels[name]}`).join(',');
}

function recordingLogger(logs: LogEntry[], inherited: LogFields): Logger {
  const record =
    (level: LogEntry['level']) =>
    (fields: LogFields, message: string): void => {
      if (logs.length >= LOGS_MAX) logs.shift();
      logs.push({ level, message, fields: { ...inherited, ...fields } });
    };
  return {
    debug: record('debug'),
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
    child: (fields) => recordingLogger(logs, { ...inherited, ...fields }),
  };
}
