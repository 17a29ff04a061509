import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import type { Stage } from '../../../src/stages/stage.ts';
import { type HealthServer, serveHealth } from '../../../src/wiring/health-server.ts';

const broken: Stage = {
  name: 'broken',
  unready: () => {
    throw new Error('the stage lost its head');
  },
  inFlight: () => 0,
  close: async () => undefined,
};

let server: HealthServer | undefined;
afterEach(() => server?.close());

async function serve(stages: readonly Stage[], metricsText = async () => 'metrics'): Promise<HealthServer> {
  server = await serveHealth(
    { host: '127.0.0.1', port: 0 },
    { metricsText, metricsContentType: 'text/plain', logger: silentTelemetry().logger },
    () => stages,
  );
  return server;
}

/** The status line of the answer to a request line as it stands: an HTTP client would tidy it. */
async function statusOf({ url }: HealthServer, requestLine: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(`${requestLine} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  const [chunk] = await once(socket, 'data');
  socket.destroy();
  return String(chunk).split('\r\n')[0] ?? '';
}

it.each([
  ['GET //', 400],
  ['GET http://[', 400],
  ['GET *', 404],
  ['GET //livez', 404],
  ['GET /readyz/', 404],
  ['POST /livez', 405],
  ['GET /livez?probe=1', 200],
  ['HEAD /livez', 200],
  ['GET /metrics', 200],
  ['GET /readyz', 503],
])('answers %s with %i, and lives on', async (requestLine, status) => {
  const running = await serve([]);
  expect(await statusOf(running, requestLine)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(await statusOf(running, 'GET /livez')).toMatch(/^HTTP\/1.1 200 /);
});

it('answers 500 where a stage or the metrics fail, and lives on', async () => {
  const running = await serve([broken], () => Promise.reject(new Error('no metrics today')));
  expect(await statusOf(running, 'GET /readyz')).toMatch(/^HTTP\/1.1 500 /);
  expect(await statusOf(running, 'GET /metrics')).toMatch(/^HTTP\/1.1 500 /);
  expect(await statusOf(running, 'GET /livez')).toMatch(/^HTTP\/1.1 200 /);
});
