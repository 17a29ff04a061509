import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';

describe('silentTelemetry', () => {
  it('adds up counters and keeps the last value of gauges, per labels in any order', () => {
    const telemetry = silentTelemetry();
    const counter = telemetry.counter({ name: 'requests_total', help: 'h', labels: ['pool', 'outcome'] });
    counter.add(2, { pool: 'a', outcome: 'scored' });
    telemetry.counter({ name: 'requests_total', help: 'h' }).add(1, { outcome: 'scored', pool: 'a' });
    counter.add(5, { pool: 'b', outcome: 'scored' });
    counter.add(1);
    telemetry.gauge({ name: 'depth', help: 'h' }).set(3);
    telemetry.gauge({ name: 'depth', help: 'h' }).set(1);
    expect(telemetry.value('requests_total', { pool: 'a', outcome: 'scored' })).toBe(3);
    expect(telemetry.value('requests_total')).toBe(1);
    expect(telemetry.total('requests_total')).toBe(9);
    expect(telemetry.value('depth')).toBe(1);
    expect(telemetry.value('unknown')).toBe(0);
  });

  it('sums up what histograms see', () => {
    const telemetry = silentTelemetry();
    const histogram = telemetry.histogram({ name: 'seconds', help: 'h', labels: ['hop'], buckets: [1] });
    for (const value of [0.5, 2, 0.25]) histogram.observe(value, { hop: 'queue' });
    expect(telemetry.observations('seconds', { hop: 'queue' })).toEqual({
      count: 3,
      sum: 2.75,
      min: 0.25,
      max: 2,
    });
    expect(telemetry.observations('seconds').count).toBe(0);
  });

  it('records log lines with the fields of their parents, the newest 1 000', () => {
    const telemetry = silentTelemetry();
    telemetry.logger.child({ service: 's' }).child({ pool: 'p' }).warn({ depth: 1 }, 'full');
    expect(telemetry.logs).toEqual([
      { level: 'warn', message: 'full', fields: { service: 's', pool: 'p', depth: 1 } },
    ]);
    for (let i = 0; i < 1_500; i++) telemetry.logger.debug({ i }, 'line');
    expect(telemetry.logs).toHaveLength(1_000);
    expect(telemetry.logs[999]?.fields['i']).toBe(1_499);
  });
});
