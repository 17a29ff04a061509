import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prometheusQuery } from '../../src/adapters/prometheus/metrics-query.ts';
import { metricsQueryConformance } from '../conformance/metrics-query.suite.ts';
import { type HttpServer, serve } from '../conformance/prometheus.fixture.ts';
import { type PrometheusServer, startPrometheus } from './prometheus/server.ts';
import { eventually } from './real-pipeline.ts';

metricsQueryConformance('a real Prometheus', async () => {
  const server = await startPrometheus();
  return { query: prometheusQuery({ url: server.url, timeoutMs: 30_000 }), close: () => server.close() };
});

describe('guardrails on a real Prometheus', () => {
  let metrics: HttpServer;
  let prometheus: PrometheusServer;
  let failing = 0.02;

  beforeAll(async () => {
    metrics = await serve((_request, response) => {
      response.setHeader('content-type', 'text/plain; version=0.0.4');
      response.end(`# TYPE failing gauge\nfailing{side="a"} ${failing}\nfailing{side="b"} 0\n`);
    });
    prometheus = await startPrometheus(metrics.url.slice('http://'.length));
  });
  afterAll(async () => {
    await prometheus?.close();
    await metrics?.close();
  });

  it('read what it scraped, the worst of all series, and what became of it', async () => {
    const query = prometheusQuery({ url: prometheus.url, timeoutMs: 30_000 });
    const highest = async (): Promise<number | undefined> => {
      const reading = await query.read('failing');
      return 'failed' in reading ? undefined : reading.highest;
    };
    await eventually(async () => (await highest()) === 0.02, 'the first scrape is there');
    expect(await query.read('failing')).toEqual({ series: 2, lowest: 0, highest: 0.02 });
    failing = 0.5;
    await eventually(async () => (await highest()) === 0.5, 'a later scrape is there');
    expect(await query.read('sum(failing')).toEqual({ failed: expect.stringMatching(/bad_data/) });
    expect(await query.read('failing[1m]')).toEqual({ failed: expect.stringMatching(/./) });
  });
});
