import { describe, expect, it } from 'vitest';
import {
  type PrometheusTelemetry,
  prometheusTelemetry,
} from '../../../../src/adapters/prometheus/telemetry.ts';

interface Opened {
  telemetry: PrometheusTelemetry;
  lines: Record<string, unknown>[];
}

function open(level: 'debug' | 'info' | 'silent' = 'info'): Opened {
  const lines: Record<string, unknown>[] = [];
  const telemetry = prometheusTelemetry({
    service: 'request-router',
    level,
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  return { telemetry, lines };
}

describe('prometheusTelemetry, metrics', () => {
  it('shows counters, gauges and histograms in text form', async () => {
    const { telemetry } = open();
    const results = telemetry.counter({ name: 'results_total', help: 'Results.', labels: ['outcome'] });
    results.add(2, { outcome: 'scored' });
    results.add(0.5, { outcome: 'expired' });
    telemetry.counter({ name: 'plain_total', help: 'h' }).add(3);
    telemetry.gauge({ name: 'queue_depth', help: 'h', labels: ['pool'] }).set(7, { pool: 'gpu' });
    telemetry.gauge({ name: 'plain_depth', help: 'h' }).set(-1);
    const seconds = telemetry.histogram({
      name: 'queue_seconds',
      help: 'h',
      labels: ['hop'],
      buckets: [0.1, 1],
    });
    for (const value of [0.05, 0.5, 5]) seconds.observe(value, { hop: 'route' });
    telemetry.histogram({ name: 'plain_seconds', help: 'h', buckets: [1] }).observe(0.5);
    const text = await telemetry.metricsText();
    for (const line of [
      '# HELP results_total Results.',
      '# TYPE results_total counter',
      'results_total{outcome="scored"} 2',
      'results_total{outcome="expired"} 0.5',
      'plain_total 3',
      'queue_depth{pool="gpu"} 7',
      'plain_depth -1',
      'queue_seconds_bucket{le="0.1",hop="route"} 1',
      'queue_seconds_bucket{le="1",hop="route"} 2',
      'queue_seconds_bucket{le="+Inf",hop="route"} 3',
      'queue_seconds_count{hop="route"} 3',
      'plain_seconds_sum 0.5',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(text).toContain('process_resident_memory_bytes');
    expect(telemetry.metricsContentType).toContain('text/plain');
  });

  it('returns the same instrument for the same name, and refuses another kind of it', () => {
    const { telemetry } = open();
    const definition = { name: 'twice_total', help: 'h' };
    expect(telemetry.counter(definition)).toBe(telemetry.counter(definition));
    expect(() => telemetry.gauge(definition)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
  });

  it('shares nothing between instances', async () => {
    const [first, second] = [open().telemetry, open().telemetry];
    first.counter({ name: 'mine_total', help: 'h' }).add(1);
    expect(await second.metricsText()).not.toContain('mine_total');
  });
});

describe('prometheusTelemetry, logs', () => {
  it('writes JSON lines with level, time, service and the fields of the parents', () => {
    const { telemetry, lines } = open();
    telemetry.logger.child({ pool: 'gpu' }).warn({ depth: 3, requestId: 'r %s 1' }, 'queue is %d full');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'warn',
      service: 'request-router',
      pool: 'gpu',
      depth: 3,
      requestId: 'r %s 1',
      msg: 'queue is %d full',
    });
    expect(Number.isNaN(Date.parse(String(lines[0]?.['time'])))).toBe(false);
  });

  it('tells nothing else that a library hung on an error, and no credentials of a URL anywhere', () => {
    const { telemetry, lines } = open();
    const address = 'https://me:se@kret@registry:8081/schemas';
    const cause = Object.assign(new Error(`get ${address}`), {
      url: `get ${address}`,
      headers: { authorization: 'se@kret' },
    });
    telemetry.logger.warn({ error: new Error('away', { cause }), url: address }, 'waits');
    telemetry.logger.warn(
      { error: String(cause), reason: `${address} and redis://:p%40ss@host:6379/0` },
      'waits',
    );
    const text = JSON.stringify(lines);
    expect(text).not.toMatch(/kret|p%40ss|authorization/);
    expect(lines[1]).toMatchObject({ reason: 'https://registry:8081/schemas and redis://host:6379/0' });
    expect(lines[0]).toMatchObject({
      url: 'https://registry:8081/schemas',
      error: { cause: { message: 'get https://registry:8081/schemas' } },
    });
  });

  it('cuts what others wrote without end', () => {
    const { telemetry, lines } = open();
    const word = 'z'.repeat(300_000);
    const error = Object.assign(new Error(word, { cause: new Error(word) }), { stack: word });
    telemetry.logger.error({ reason: word, error }, 'refused');
    telemetry.logger.error({ error: word }, 'refused');
    expect(JSON.stringify(lines).length).toBeLessThan(60_000);
    expect(lines[0]?.['reason']).toMatch(/^z+… \(300000 characters\)$/);
  });

  it('keeps message, code and cause of errors', () => {
    const { telemetry, lines } = open();
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'TOO_LARGE' });
    telemetry.logger.error({ error }, 'failed');
    expect(lines[0]?.['error']).toMatchObject({
      message: 'outer',
      code: 'TOO_LARGE',
      cause: { message: 'inner' },
    });
  });

  it.each([
    { level: 'debug' as const, count: 4 },
    { level: 'info' as const, count: 3 },
    { level: 'silent' as const, count: 0 },
  ])('at level $level writes $count of four lines', ({ level, count }) => {
    const { telemetry, lines } = open(level);
    telemetry.logger.debug({}, 'd');
    telemetry.logger.info({}, 'i');
    telemetry.logger.warn({}, 'w');
    telemetry.logger.error({}, 'e');
    expect(lines).toHaveLength(count);
  });
});
