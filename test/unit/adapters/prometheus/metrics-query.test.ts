import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { prometheusQuery } from '../../../../src/adapters/prometheus/metrics-query.ts';
import { type HttpServer, serve } from '../../../conformance/prometheus.fixture.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function ask(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: { path?: string; token?: string; timeoutMs?: number } = {},
) {
  const server = await serve(answer);
  servers.push(server);
  const { path = '', token = '', timeoutMs = 30_000 } = options;
  return prometheusQuery({ url: server.url + path, token, timeoutMs }).read('up');
}

const says =
  (body: string, status = 200) =>
  (_request: IncomingMessage, response: ServerResponse): void => {
    response.statusCode = status;
    response.end(body);
  };
const vector = (...values: readonly string[]): string =>
  JSON.stringify({
    status: 'success',
    data: { resultType: 'vector', result: values.map((value) => ({ metric: {}, value: [1, value] })) },
  });

describe('a query of Prometheus', () => {
  it('goes to the API under the path of the address, with the token', async () => {
    const seen: unknown[] = [];
    const reading = await ask(
      (request, response) => {
        seen.push(request.method, request.url, request.headers.authorization);
        response.end(vector('0.5'));
      },
      { path: '/prometheus/', token: 'secret' },
    );
    expect(reading).toEqual({ series: 1, lowest: 0.5, highest: 0.5 });
    expect(seen).toEqual(['POST', '/prometheus/api/v1/query', 'Bearer secret']);
  });

  it('is sent without a token where there is none', async () => {
    let authorization: string | undefined = 'unseen';
    await ask((request, response) => {
      authorization = request.headers.authorization;
      response.end(vector('1'));
    });
    expect(authorization).toBeUndefined();
  });

  it('follows no redirect: the token would go along', async () => {
    let asked = 0;
    const elsewhere = await serve((_request, response) => {
      asked += 1;
      response.end(vector('1'));
    });
    servers.push(elsewhere);
    const reading = await ask((_request, response) => {
      response.writeHead(307, { location: `${elsewhere.url}/api/v1/query` }).end();
    });
    expect(reading).toEqual({ failed: expect.stringMatching(/redirected \(status 307\)/) });
    expect(asked).toBe(0);
  });

  it.each([
    [
      'an error of Prometheus',
      says('{"status":"error","errorType":"execution","error":"too many"}', 422),
      /execution: "?too many/,
    ],
    ['a page of somebody else', says('<html>502</html>', 502), /no answer of Prometheus' API \(status 502\)/],
    ['an empty answer', says(''), /no answer of Prometheus' API/],
    [
      'JSON of another shape',
      says('{"status":"success","data":{"resultType":"matrix","result":[]}}'),
      /no answer of/,
    ],
    [
      'a sample that is no pair',
      says('{"status":"success","data":{"resultType":"vector","result":[{"value":[1]}]}}'),
      /no answer of/,
    ],
    ['a number that is none', says(vector('many')), /NaN/],
    [
      'a warning: series may be missing',
      says(vector('1').replace('{', '{"warnings":["a store is away"],')),
      /warning: "?a store is away/,
    ],
    ['more than it may have', says(vector(...Array<string>(20_000).fill('1'))), /more than 262144 bytes/],
  ])('has no reading from %s', async (_, answer, reason) => {
    expect(await ask(answer)).toEqual({ failed: expect.stringMatching(reason) });
  });

  it('reads no more than it may of an answer that never ends', async () => {
    let closed = false;
    const reading = await ask((_request, response) => {
      response.on('close', () => {
        closed = true;
      });
      const more = (): void => {
        while (!closed && response.write('x'.repeat(65_536)));
        if (!closed) response.once('drain', more);
      };
      more();
    });
    expect(reading).toEqual({ failed: expect.stringMatching(/more than 262144 bytes/) });
    await expect.poll(() => closed, { timeout: 30_000 }).toBe(true);
  });

  it.each([
    ['nothing', () => undefined],
    [
      'its beginning',
      (_request: IncomingMessage, response: ServerResponse) => void response.write('{"status"'),
    ],
  ])('gives up after its time on a server that says %s', async (_, answer) => {
    expect(await ask(answer, { timeoutMs: 100 })).toEqual({ failed: 'no answer within 100 ms' });
  });

  it('says why nobody can be reached, and never the token', async () => {
    const server = await serve(() => undefined);
    await server.close();
    const reading = await prometheusQuery({ url: server.url, token: 'secret', timeoutMs: 30_000 }).read('up');
    expect(reading).toEqual({ failed: expect.stringMatching(/unreachable: .*ECONNREFUSED/) });
    expect(JSON.stringify(reading)).not.toContain('secret');
  });

  it.each(['se\ncret', 'se\u0000cret', 'se\u201ccret'])(
    'tells nobody a token that cannot be sent',
    async (token) => {
      const reading = await ask(says(vector('1')), { token });
      expect(reading).toEqual({ failed: 'the request cannot be sent' });
    },
  );
});
