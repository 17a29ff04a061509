import { describe, expect, it } from 'vitest';
import type { LabelValues, Telemetry } from '../../src/ports/telemetry.ts';

/** An adapter, and how what it was told is read back. */
export interface TelemetryFactory {
  telemetry: Telemetry;
  /** Of a counter or gauge, under exactly these labels; 0 where there is none. */
  value(name: string, labels?: LabelValues): Promise<number>;
  observations(name: string, labels?: LabelValues): Promise<{ count: number; sum: number }>;
  /** Log lines from the first on, with the fields of their loggers. */
  lines(): readonly { level: string; message: string; fields: Readonly<Record<string, unknown>> }[];
}

/** What every adapter of Telemetry does. */
export function telemetryConformance(name: string, open: () => TelemetryFactory): void {
  describe(`telemetry: ${name}`, () => {
    it('adds counters up, per labels in any order', async () => {
      const { telemetry, value } = open();
      const counter = telemetry.counter({ name: 'requests_total', help: 'h', labels: ['pool', 'outcome'] });
      counter.add(2, { pool: 'a', outcome: 'scored' });
      counter.add(0.5, { outcome: 'scored', pool: 'a' });
      counter.add(0, { pool: 'a', outcome: 'scored' });
      counter.add(5, { pool: 'b', outcome: 'scored' });
      expect(await value('requests_total', { pool: 'a', outcome: 'scored' })).toBe(2.5);
      expect(await value('requests_total', { pool: 'b', outcome: 'scored' })).toBe(5);
      expect(await value('requests_total', { pool: 'c', outcome: 'scored' })).toBe(0);
    });

    it('keeps the last value of a gauge', async () => {
      const { telemetry, value } = open();
      const gauge = telemetry.gauge({ name: 'depth', help: 'h' });
      for (const depth of [3, -1.5]) gauge.set(depth);
      expect(await value('depth')).toBe(-1.5);
    });

    it('counts and sums up what a histogram sees', async () => {
      const { telemetry, observations } = open();
      const seconds = telemetry.histogram({ name: 'wait_seconds', help: 'h', labels: ['hop'], buckets: [1] });
      for (const wait of [0.5, 2, 0.25]) seconds.observe(wait, { hop: 'queue' });
      expect(await observations('wait_seconds', { hop: 'queue' })).toMatchObject({ count: 3, sum: 2.75 });
    });

    it('has the same values behind a metric that is defined again', async () => {
      const { telemetry, value } = open();
      const definition = { name: 'twice_total', help: 'h', labels: ['pool'] };
      for (let n = 0; n < 2; n += 1) telemetry.counter(definition).add(1, { pool: 'a' });
      expect(await value('twice_total', { pool: 'a' })).toBe(2);
    });

    it('refuses a name that is another kind’s', () => {
      const { telemetry } = open();
      const kinds = ['counter', 'gauge', 'histogram'] as const;
      const definition = { name: 'taken', help: 'h', buckets: [1] };
      telemetry.gauge(definition);
      for (const kind of kinds.filter((each) => each !== 'gauge'))
        expect(() => telemetry[kind](definition)).toThrow(
          expect.objectContaining({ code: 'INVALID_CONFIG', message: expect.stringContaining('"taken"') }),
        );
    });

    it('refuses a label that the metric was not defined with, and a counter that falls', () => {
      const { telemetry } = open();
      const counter = telemetry.counter({ name: 'results_total', help: 'h', labels: ['outcome'] });
      const gauge = telemetry.gauge({ name: 'queue_depth', help: 'h' });
      const seconds = telemetry.histogram({ name: 'queue_seconds', help: 'h', buckets: [1] });
      const request = { requestId: 'r1' };
      for (const wrong of [
        () => counter.add(1, request),
        () => gauge.set(1, request),
        () => seconds.observe(1, request),
        () => counter.add(-1),
        () => counter.add(Number.NaN),
      ])
        expect(wrong).toThrow();
    });

    it('logs lines with their level, their fields and those of their loggers', () => {
      const { telemetry, lines } = open();
      const child = telemetry.logger.child({ pool: 'gpu' }).child({ worker: 'w1' });
      child.debug({}, 'd');
      child.info({ depth: 3 }, 'queue is %d full');
      child.warn({ worker: 'w2' }, 'w');
      telemetry.logger.error({ code: 'POISON' }, 'e');
      expect(lines()).toMatchObject([
        { level: 'debug', message: 'd', fields: { pool: 'gpu', worker: 'w1' } },
        { level: 'info', message: 'queue is %d full', fields: { pool: 'gpu', worker: 'w1', depth: 3 } },
        { level: 'warn', message: 'w', fields: { pool: 'gpu', worker: 'w2' } },
        { level: 'error', message: 'e', fields: { code: 'POISON' } },
      ]);
    });
  });
}
