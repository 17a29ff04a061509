import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { prometheusTelemetry } from '../../src/adapters/prometheus/telemetry.ts';
import type { LabelValues } from '../../src/ports/telemetry.ts';
import { telemetryConformance } from './telemetry.suite.ts';

telemetryConformance('memory', () => {
  const telemetry = silentTelemetry();
  return {
    telemetry,
    value: async (name, labels) => telemetry.value(name, labels),
    observations: async (name, labels) => telemetry.observations(name, labels),
    lines: () => telemetry.logs,
  };
});

telemetryConformance('Prometheus and pino', () => {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  const telemetry = prometheusTelemetry({
    service: 'test',
    level: 'debug',
    destination: {
      write(line) {
        const { level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
        lines.push({ level: String(level), message: String(msg), fields });
      },
    },
  });
  /** The sample of exactly these labels, in whatever order the text has them. */
  const sample = async (name: string, labels: LabelValues = {}): Promise<number> => {
    const wanted = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    for (const line of (await telemetry.metricsText()).split('\n')) {
      const [, found, inner = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (found === name && inner.split(',').filter(Boolean).sort().join() === wanted.sort().join())
        return Number(value);
    }
    return 0;
  };
  return {
    telemetry,
    value: sample,
    observations: async (name, labels) => ({
      count: await sample(`${name}_count`, labels),
      sum: await sample(`${name}_sum`, labels),
    }),
    lines: () => lines,
  };
});
