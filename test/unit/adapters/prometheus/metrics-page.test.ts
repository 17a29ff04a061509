import type { IncomingMessage, ServerResponse } from 'node:http';
import fc from 'fast-check';
import { Counter, Registry } from 'prom-client';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchMetricsPage, samplesOf } from '../../../../src/adapters/prometheus/metrics-page.ts';
import { type HttpServer, serve } from '../../../conformance/prometheus.fixture.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function served(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = await serve(answer);
  servers.push(server);
  return `${server.url}/metrics`;
}

const asked = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  timeoutMs?: number,
): Promise<string> => fetchMetricsPage(await served(answer), timeoutMs);

const says =
  (status: number, headers: Record<string, string> = {}) =>
  (_request: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(status, headers).end('x');

describe('a metrics page that is asked for', () => {
  it('is what the process answers', async () => {
    const page = 'a{b="ü"} 1\n'.repeat(10_000);
    expect(await asked((_request, response) => void response.end(page))).toBe(page);
  });

  it.each([404, 500, 304])('is none with status %i', async (status) => {
    await expect(asked(says(status))).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringMatching(`this is no metrics page.*status ${status}`),
    });
  });

  it('is not looked for elsewhere', async () => {
    let elsewhere = 0;
    const location = await served((_request, response) => {
      elsewhere += 1;
      response.end('a 1');
    });
    await expect(asked(says(302, { location }))).rejects.toThrow(/no metrics page.*status 302/);
    expect(elsewhere).toBe(0);
  });

  it('is not read on once it is too large', async () => {
    let closed = false;
    const reading = asked((_request, response) => {
      response.on('close', () => {
        closed = true;
      });
      const more = (): void => {
        while (!closed && response.write('x'.repeat(1 << 20)));
        if (!closed) response.once('drain', more);
      };
      more();
    });
    await expect(reading).rejects.toThrow(/the metrics page is too large.*at most 16777216 bytes/);
    await expect.poll(() => closed, { timeout: 30_000 }).toBe(true);
  });

  it.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
    ['no answer', () => undefined],
    ['half a page', (_request, response) => void response.write('a{b="1"} ')],
  ])('is not waited for longer than it may: %s', async (_, answer) => {
    await expect(asked(answer, 100)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringMatching(/the metrics page cannot be read.*Is the worker there/),
    });
  });

  it('tells of a process that ends in the middle of it', async () => {
    const answer = (_request: IncomingMessage, response: ServerResponse): void => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('a', () => response.destroy());
    };
    await expect(asked(answer)).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });

  it.each(['http://127.0.0.1:1/metrics', 'http://[', 'https://127.0.0.1:1'])(
    'tells that %s is none',
    async (url) => {
      await expect(fetchMetricsPage(url)).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
    },
  );

  it('is asked for with the credentials of the URL, which are shown nowhere', async () => {
    let authorization = '';
    const url = await served((request, response) => {
      authorization = request.headers.authorization ?? '';
      response.writeHead(403).end();
    });
    const secret = url.replace('http://', 'http://user:s%20ecret@');
    const error: unknown = await fetchMetricsPage(secret).catch((reason: unknown) => reason);
    expect(authorization).toBe(`Basic ${Buffer.from('user:s ecret').toString('base64')}`);
    expect(String(error)).toContain('status 403');
    const unreachable: unknown = await fetchMetricsPage('http://user:secret@127.0.0.1:1/').catch(
      (reason: unknown) => reason,
    );
    const chain = (of: unknown): string =>
      of instanceof Error ? `${of.stack} ${chain(of.cause)}` : String(of);
    for (const each of [error, unreachable]) expect(chain(each)).not.toMatch(/ecret/);
  });
});

type Shown = Record<string, string | number>;

const shown = (page: string): Shown[] =>
  samplesOf(page, 'a').map(({ labels, value }) => ({ ...Object.fromEntries(labels), value }));

describe('the series of a metric', () => {
  it.each<[string, string, Shown[]]>([
    ['one', 'a{b="1"} 2.5', [{ b: '1', value: 2.5 }]],
    ['other metrics beside it', 'aa{b="1"} 1\nb{a="1"} 2\n# a{b="1"} 3\na{b="2"} 4', [{ b: '2', value: 4 }]],
    ['a time', 'a{b="1"} 2 1700000000000', [{ b: '1', value: 2 }]],
    ['an exemplar', 'a{b="1"} 2 # {trace="x"} 1', [{ b: '1', value: 2 }]],
    [
      'lines of another system',
      'a{b="1"} 2\r\na{b="2"} 3\r\n',
      [
        { b: '1', value: 2 },
        { b: '2', value: 3 },
      ],
    ],
    ['room between its parts', 'a{ b = "1" , c="2", }  2', [{ b: '1', c: '2', value: 2 }]],
    ['no room at all', 'a{b="1"}2', [{ b: '1', value: 2 }]],
    ['braces and commas in a text', 'a{b="},{\\"=",c="x"} 1e3', [{ b: '},{"=', c: 'x', value: 1_000 }]],
    ['escapes', 'a{b="1\\n2\\\\n\\x"} 1', [{ b: '1\n2\\nx', value: 1 }]],
    ['a label called __proto__', 'a{constructor="1"} 2', [{ constructor: '1', value: 2 }]],
  ])('has %s', (_, page, want) => {
    expect(shown(page)).toEqual(want);
  });

  it.each([
    'a{b="1"}',
    'a{b="1"} ',
    'a{b="1"} x',
    'a{b="1"} NaN',
    'a{b="1"} +Inf',
    'a{b="1"} 1e999',
    'a{b="1',
    'a 1',
  ])('has no number in %j', (page) => {
    expect(shown(page)).toEqual([]);
  });

  it.each([
    ['rooms', `a{${' '.repeat(5_000_000)}`],
    ['room behind', `a{b="1"}${' '.repeat(5_000_000)}`],
    ['a label', `a{b="${'\\"'.repeat(5_000_000)}"} 1`],
  ])('are none where a line has no end: %s', (_, page) => {
    expect(shown(page)).toEqual([]);
  });

  it('are those that prom-client wrote, whatever labels and values are', async () => {
    const label = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.constantFrom('"', '\\', '\n', '\\n', '},', '="', '{', '# ', ' 1'),
      fc
        .array(fc.constantFrom('"', '\\', '\n', 'n', ',', '}', '{', '=', ' '), { maxLength: 6 })
        .map((parts) => parts.join('')),
    );
    const series = fc.uniqueArray(
      fc.record({ b: label, c: label, value: fc.double({ min: 0, max: 1e300, noNaN: true }) }),
      { maxLength: 6, selector: ({ b, c }) => JSON.stringify([b, c]) },
    );
    await fc.assert(
      fc.asyncProperty(series, async (drawn) => {
        const registers = [new Registry()];
        const counter = new Counter({ name: 'a', help: 'a{b="1"} 1', labelNames: ['b', 'c'], registers });
        const other = new Counter({ name: 'ab', help: 'x', labelNames: ['b', 'c'], registers });
        for (const { b, c, value } of drawn) {
          counter.inc({ b, c }, value);
          other.inc({ b, c }, 1);
        }
        const page = (await registers[0]?.metrics()) ?? '';
        expect(shown(page)).toEqual(drawn.map(({ b, c, value }) => ({ b, c, value })));
      }),
    );
  });
});
