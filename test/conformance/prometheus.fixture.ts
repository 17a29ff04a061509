import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { QUERIES } from './metrics-query.suite.ts';

export interface HttpServer {
  url: string;
  close(): Promise<void>;
}

/** A server on loopback. */
export async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
): Promise<HttpServer> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Speaks Prometheus' documented HTTP API, and knows the answers to the conformance queries alone. A real one is in test/slow. */
export function serveQueries(): Promise<HttpServer> {
  return serve(async (request, response) => {
    const query = new URLSearchParams(await text(request)).get('query');
    const known = QUERIES.find((each) => each.query === query);
    response.setHeader('content-type', 'application/json');
    if (request.method !== 'POST' || request.url !== '/api/v1/query' || known === undefined) {
      response.statusCode = 400;
      response.end(JSON.stringify({ status: 'error', errorType: 'bad_data', error: 'parse error' }));
      return;
    }
    const samples = known.values.map((value): [number, string] => [1_700_000_000.5, sampleText(value)]);
    const isScalar = known.query === '2.5' || known.query === '-1 / 0';
    const result = isScalar ? samples[0] : samples.map((value, n) => ({ metric: { n: String(n) }, value }));
    const data = { resultType: isScalar ? 'scalar' : 'vector', result };
    response.end(JSON.stringify({ status: 'success', data }));
  });
}

function sampleText(value: number): string {
  return String(value).replace('Infinity', 'Inf').replace(/^Inf/, '+Inf');
}
