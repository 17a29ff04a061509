import { memoryMetrics } from '../../src/adapters/memory/metrics-query.ts';
import { prometheusQuery } from '../../src/adapters/prometheus/metrics-query.ts';
import { metricsQueryConformance, QUERIES, REFUSED } from './metrics-query.suite.ts';
import { serveQueries } from './prometheus.fixture.ts';

metricsQueryConformance('memory', async () => {
  const query = memoryMetrics();
  for (const each of QUERIES) query.set(each.query, each.values);
  query.fail(REFUSED, 'it cannot be read');
  return { query, close: async () => undefined };
});

metricsQueryConformance('Prometheus API, served by the test', async () => {
  const server = await serveQueries();
  return { query: prometheusQuery({ url: server.url, timeoutMs: 30_000 }), close: () => server.close() };
});
