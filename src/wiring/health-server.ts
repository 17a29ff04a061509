import { createServer } from 'node:http';
import type { PrometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import type { Settings } from '../config/settings.ts';
import type { Stage } from '../stages/stage.ts';
import { unreadyReason } from './ready.ts';

export interface HealthServer {
  url: string;
  close(): Promise<void>;
}

/**
 * `/livez` (the process runs), `/readyz` (every stage can do its work; 503 with the reason otherwise, and while nothing has started
 * or all is draining), `/metrics` (Prometheus text).
 */
export async function serveHealth(
  http: Settings['http'],
  telemetry: PrometheusTelemetry,
  stages: () => readonly Stage[],
): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end();
    } else if (pathname === '/livez') {
      response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n');
    } else if (pathname === '/readyz') {
      const running = stages();
      const reason = running.length === 0 ? 'not started, or draining' : unreadyReason(running);
      response
        .writeHead(reason === undefined ? 200 : 503, { 'content-type': 'text/plain' })
        .end(`${reason ?? 'ok'}\n`);
    } else if (pathname === '/metrics') {
      telemetry.metricsText().then(
        (text) => response.writeHead(200, { 'content-type': telemetry.metricsContentType }).end(text),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    } else {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('try /livez, /readyz or /metrics\n');
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(http.port, http.host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : http.port;
  return {
    url: `http://${http.host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
