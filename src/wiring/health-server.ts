import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { PrometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import type { Settings } from '../config/settings.ts';
import type { Stage } from '../stages/stage.ts';
import { unreadyReason } from './ready.ts';

export interface HealthServer {
  url: string;
  close(): Promise<void>;
}

type HealthTelemetry = Pick<PrometheusTelemetry, 'metricsText' | 'metricsContentType' | 'logger'>;

const TEXT = { 'content-type': 'text/plain' };

/**
 * `/livez` (the process runs), `/readyz` (every stage can do its work; 503 with the reason otherwise, and while nothing has started
 * or all is draining), `/metrics` (Prometheus text). No request ends the process: what fails is answered with 500.
 */
export async function serveHealth(
  http: Settings['http'],
  telemetry: HealthTelemetry,
  stages: () => readonly Stage[],
): Promise<HealthServer> {
  const { logger } = telemetry;
  const server = createServer((request, response) => {
    answer(request, response, telemetry, stages).catch((error: unknown) => {
      logger.error({ error: String(error), url: request.url }, 'a request for health or metrics failed');
      if (response.headersSent) response.destroy();
      else response.writeHead(500, TEXT).end(`${String(error)}\n`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(http.port, http.host, resolve);
  });
  // Such as a connection that could not be accepted for want of a file descriptor.
  server.on('error', (error) => logger.warn({ error: String(error) }, 'the health server reported an error'));
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

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  telemetry: HealthTelemetry,
  stages: () => readonly Stage[],
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  const url = URL.parse(request.url ?? '/', 'http://localhost');
  switch (url?.pathname) {
    case undefined:
      response.writeHead(400, TEXT).end('not a URL; try /livez, /readyz or /metrics\n');
      return;
    case '/livez':
      response.writeHead(200, TEXT).end('ok\n');
      return;
    case '/readyz': {
      const running = stages();
      const reason = running.length === 0 ? 'not started, or draining' : unreadyReason(running);
      response.writeHead(reason === undefined ? 200 : 503, TEXT).end(`${reason ?? 'ok'}\n`);
      return;
    }
    case '/metrics': {
      const text = await telemetry.metricsText();
      response.writeHead(200, { 'content-type': telemetry.metricsContentType }).end(text);
      return;
    }
    default:
      response.writeHead(404, TEXT).end('try /livez, /readyz or /metrics\n');
  }
}
