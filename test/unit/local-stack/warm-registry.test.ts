import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { warmRegistry } from '../../../src/local-stack/warm-registry.ts';

let server: Server | undefined;

/** As much of a registry as warming it takes. Answers its URL, its subjects and what it was asked. */
async function serve({ deletes = true } = {}) {
  const subjects = new Map<string, string[]>();
  const schemas: string[] = [];
  const asked: string[] = [];
  const listening = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://registry');
    const [, kind = '', name = ''] = url.pathname.split('/');
    asked.push(`${request.method} ${url.pathname}${url.search}`);
    const body = request.method === 'POST' ? ((await json(request)) as { schema: string }) : { schema: '' };
    const answer = (status: number, value: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (request.method === 'DELETE') {
      if (url.searchParams.has('permanent')) subjects.delete(name);
      answer(deletes ? 200 : 500, [1]);
    } else if (request.method === 'POST') {
      if (!schemas.includes(body.schema)) schemas.push(body.schema);
      subjects.set(name, schemas);
      answer(200, { id: schemas.indexOf(body.schema) + 1 });
    } else if (kind === 'schemas') answer(200, { schema: schemas[Number(url.pathname.split('/')[3]) - 1] });
    else answer(200, { compatibilityLevel: 'FULL_TRANSITIVE' });
  });
  server = listening;
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return { url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`, subjects, schemas, asked };
}

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

describe('warming a registry', () => {
  it('registers and looks up what a client does, and leaves no subject behind', async () => {
    const { url, subjects, schemas, asked } = await serve();
    await warmRegistry(url);
    expect(schemas).toHaveLength(2);
    expect(subjects.size).toBe(0);
    for (const request of [
      'POST /subjects/millrace-warm-up-value/versions',
      'POST /subjects/millrace-warm-up-value',
      'GET /schemas/ids/1',
      'GET /schemas/ids/2',
    ]) {
      expect(asked).toContain(request);
    }
  });

  it('says which request the registry does not take', async () => {
    const { url } = await serve({ deletes: false });
    await expect(warmRegistry(url)).rejects.toMatchObject({
      code: 'STACK_UNAVAILABLE',
      message: expect.stringMatching(/DELETE .*millrace-warm-up-value.*got 500/),
    });
  });

  it('fails where nobody answers', async () => {
    await expect(warmRegistry('http://127.0.0.1:9')).rejects.toMatchObject({ code: 'REGISTRY_UNAVAILABLE' });
  });
});
