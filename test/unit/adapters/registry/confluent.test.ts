import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { confluentSchemaRegistry } from '../../../../src/adapters/registry/confluent.ts';

const SCHEMA = JSON.stringify({ type: 'record', name: 'R', fields: [{ name: 'id', type: 'string' }] });
/** Where no answer is to come. */
const SHORT_MS = 200;
/** Where one is to come: machines are slow at times. */
const LONG_MS = 20_000;
/** Where one is to come after one that does not. */
const MIDDLE_MS = 1_500;
const servers: Server[] = [];
const workers: Worker[] = [];

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A registry that treats its requests as these say, the last of them as often as it is asked, and how often that was. */
async function serve(timeoutMs: number, ...listeners: RequestListener[]) {
  const asked: string[] = [];
  const url = await listen((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    listeners[Math.min(asked.length, listeners.length) - 1]?.(request, response);
  });
  return { registry: confluentSchemaRegistry({ url, timeoutMs }), asked };
}

function answer(status: number, body: object | string): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

const silence: RequestListener = () => undefined;
const halfAnAnswer: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"schema":');
};
const brokenOff: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"schema":', () => response.destroy());
};
const hangUp: RequestListener = (request) => request.socket.destroy();
const found = answer(200, { schema: '"string"' });
/** Bytes that keep coming and never end: a time-out of the socket alone would not see it. */
const dripping: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => response.write(' '), SHORT_MS / 5);
  response.on('close', () => clearInterval(timer));
};

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
});

/** A registry in a thread of its own, which answers while this one is busy. */
async function listenElsewhere(): Promise<string> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     let count = 0;
     const server = require('node:http').createServer((request, response) => {
       response.setHeader('content-type', 'application/json');
       count += 1;
       response.end(request.url === '/count' ? String(count) : JSON.stringify({ schema: '"string"' }));
     });
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
    { eval: true },
  );
  workers.push(worker);
  const [port] = await once(worker, 'message');
  return `http://127.0.0.1:${port}`;
}

const UNAVAILABLE = { code: 'REGISTRY_UNAVAILABLE', retryable: true };

describe('a registry that does not answer', () => {
  it.each([
    { what: 'nothing', behaviour: silence },
    { what: 'half an answer', behaviour: halfAnAnswer },
    { what: 'an answer without an end', behaviour: dripping },
    { what: 'an answer that breaks off', behaviour: brokenOff },
  ])('is asked twice, and is REGISTRY_UNAVAILABLE: $what', async ({ behaviour }) => {
    const { registry, asked } = await serve(SHORT_MS, behaviour);
    await expect(registry.schemaById(7)).rejects.toMatchObject({
      ...UNAVAILABLE,
      message: expect.stringContaining(`no answer within ${SHORT_MS} ms`),
      cause: { code: 'NO_ANSWER' },
    });
    expect(asked).toEqual(['GET /schemas/ids/7', 'GET /schemas/ids/7']);
  });

  it.each([
    { what: 'nothing', behaviour: silence },
    { what: 'half an answer', behaviour: halfAnAnswer },
  ])('at first, and then does: $what', async ({ behaviour }) => {
    const { registry, asked } = await serve(MIDDLE_MS, behaviour, found);
    expect(await registry.schemaById(7)).toBe('"string"');
    expect(asked).toHaveLength(2);
  });

  it('is asked twice to register, too: where it took the first time, it says so the second', async () => {
    const taken = answer(200, { id: 7 });
    const compatibility = answer(200, { compatibilityLevel: 'BACKWARD' });
    const { registry, asked } = await serve(
      MIDDLE_MS,
      compatibility,
      compatibility,
      silence,
      compatibility,
      compatibility,
      taken,
    );
    expect(await registry.register('s-value', SCHEMA, 'BACKWARD')).toBe(7);
    expect(asked.filter((line) => line.startsWith('POST'))).toHaveLength(2);
  });

  it('at any step of a registration is asked twice, and is REGISTRY_UNAVAILABLE', async () => {
    const { registry, asked } = await serve(SHORT_MS, silence);
    await expect(registry.register('s-value', SCHEMA, 'BACKWARD')).rejects.toMatchObject(UNAVAILABLE);
    expect(asked).toEqual(['GET /config/s-value', 'GET /config/s-value']);
  });

  it('because this process was too busy to read the answer has answered', async () => {
    const url = await listenElsewhere();
    const registry = confluentSchemaRegistry({ url, timeoutMs: MIDDLE_MS });
    expect(await registry.schemaById(1)).toBe('"string"');
    const answered = registry.schemaById(1);
    await new Promise((resolve) => setImmediate(resolve)); // the request is on its way
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MIDDLE_MS * 2);
    expect(await answered).toBe('"string"');
    expect(await (await fetch(`${url}/count`)).json()).toBe(3);
  });
});

describe('what is the registry’s fault and what is the record’s', () => {
  it.each([
    { what: 'a connection that is closed', behaviour: hangUp },
    { what: 'an error of the registry', behaviour: answer(500, { error_code: 50001, message: 'store' }) },
    { what: 'an overloaded registry', behaviour: answer(429, { error_code: 42901, message: 'slow down' }) },
    { what: "a proxy's page", behaviour: answer(404, '<html>no such page</html>') },
    { what: 'a wrong path', behaviour: answer(404, { error_code: 404, message: 'HTTP 404 Not Found' }) },
  ])('$what is REGISTRY_UNAVAILABLE, and asked for once', async ({ behaviour }) => {
    const { registry, asked } = await serve(LONG_MS, behaviour);
    await expect(registry.schemaById(7)).rejects.toMatchObject(UNAVAILABLE);
    expect(asked).toHaveLength(1);
  });

  it.each([
    { status: 401, body: { error_code: 401, message: 'Unauthorized' } },
    { status: 403, body: { error_code: 403, message: 'not for you' } },
    { status: 401, body: '' },
    { status: 403, body: '<html>a proxy</html>' },
  ])(
    'credentials that are refused ($status) are INVALID_CONFIG, and asked for once',
    async ({ status, body }) => {
      const { registry, asked } = await serve(LONG_MS, answer(status, body));
      const refusal = {
        code: 'INVALID_CONFIG',
        retryable: false,
        message: expect.stringMatching(
          new RegExp(`status ${status}.*Check the credentials of the schema registry`),
        ),
      };
      await expect(registry.schemaById(7)).rejects.toMatchObject(refusal);
      expect(asked).toHaveLength(1);
      await expect(registry.register('s-value', SCHEMA, 'BACKWARD')).rejects.toMatchObject(refusal);
    },
  );

  it('a closed port is REGISTRY_UNAVAILABLE, for both calls', async () => {
    const url = await listen(silence);
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    const registry = confluentSchemaRegistry({ url });
    await expect(registry.schemaById(7)).rejects.toMatchObject(UNAVAILABLE);
    await expect(registry.register('s-value', SCHEMA, 'BACKWARD')).rejects.toMatchObject(UNAVAILABLE);
  });

  it('"schema not found" in the registry’s own words is an answer', async () => {
    const { registry, asked } = await serve(
      LONG_MS,
      answer(404, { error_code: 40403, message: 'Schema 7 not found' }),
    );
    expect(await registry.schemaById(7)).toBeUndefined();
    expect(asked).toHaveLength(1);
  });

  it.each([
    { what: 'a schema of another kind', body: { schemaType: 'JSON', schema: '{"type":"object"}' } },
    { what: 'a schema that does not compile', body: { schema: '{"type":"record","name":"R"}' } },
  ])('$what is UNKNOWN_SCHEMA: asking again does not help', async ({ body }) => {
    const { registry } = await serve(LONG_MS, answer(200, body));
    await expect(registry.schemaById(7)).rejects.toMatchObject({ code: 'UNKNOWN_SCHEMA', retryable: false });
  });

  it('never shows the password of its URL', async () => {
    const url = 'http://user:secret@127.0.0.1:9';
    await expect(confluentSchemaRegistry({ url }).schemaById(7)).rejects.toMatchObject({
      message: expect.not.stringContaining('secret'),
    });
  });
});
