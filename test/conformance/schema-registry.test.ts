import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SchemaRegistry as StockClient } from '@kafkajs/confluent-schema-registry';
import { afterEach, describe, expect, it } from 'vitest';
import { confluentSchemaRegistry } from '../../src/adapters/registry/confluent.ts';
import { memorySchemaRegistry } from '../../src/adapters/registry/memory.ts';
import { parseType } from '../../src/contracts/avro-type.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import type { SchemaRegistry } from '../../src/ports/schema-registry.ts';
import { EXAMPLES } from '../contract/examples.ts';
import { decodeLearning, RECORD_NAMES, registeredCodecs } from '../contract/fixture.ts';

function registryUrl(): string {
  const url = process.env.MILLRACE_REGISTRY_URL;
  if (url === undefined || url === '') {
    throw new Error(
      'MILLRACE_REGISTRY_URL is not set: this suite needs a schema registry (`millrace stack up` starts one)',
    );
  }
  return url;
}

const registries: { name: string; connect(): SchemaRegistry }[] = [
  { name: 'memory', connect: memorySchemaRegistry },
  { name: 'confluent', connect: () => confluentSchemaRegistry({ url: registryUrl() }) },
];

let serial = 0;
const uniqueSubject = (): string => `conformance.registry.${process.pid}.${Date.now()}.${++serial}-value`;

interface Field {
  name: string;
  type: unknown;
  default?: unknown;
}

/** A record of the conformance suite; its name is new in each run, so that no earlier run's schema is met. */
function recordOf(name: string, fields: readonly Field[]): string {
  return JSON.stringify({ type: 'record', name, namespace: 'millrace.conformance', fields });
}
const uniqueName = (): string => `Record${process.pid}x${Date.now()}x${++serial}`;

const ID: Field = { name: 'id', type: 'string' };
const COUNT: Field = { name: 'count', type: 'int', default: 0 };

describe.each(registries)('schema registry: $name', ({ connect }) => {
  it('gives a schema an id that stands for it', async () => {
    const registry = connect();
    const schema = recordOf(uniqueName(), [ID, COUNT]);
    const id = await registry.register(uniqueSubject(), schema, 'FULL_TRANSITIVE');
    expect(id).toBeGreaterThan(0);
    const text = await registry.schemaById(id);
    expect(text === undefined ? undefined : parseType(text).equals(parseType(schema))).toBe(true);
  });

  it('gives the same schema the same id: again, under another subject, from another client', async () => {
    const registry = connect();
    const schema = recordOf(uniqueName(), [ID]);
    const subject = uniqueSubject();
    const id = await registry.register(subject, schema, 'FULL_TRANSITIVE');
    expect(await registry.register(subject, schema, 'FULL_TRANSITIVE')).toBe(id);
    expect(await registry.register(uniqueSubject(), schema, 'FULL_TRANSITIVE')).toBe(id);
  });

  it('gives another schema another id', async () => {
    const registry = connect();
    const first = await registry.register(uniqueSubject(), recordOf(uniqueName(), [ID]), 'BACKWARD');
    expect(await registry.register(uniqueSubject(), recordOf(uniqueName(), [ID]), 'BACKWARD')).not.toBe(
      first,
    );
  });

  it('keeps several versions, each under its own id', async () => {
    const registry = connect();
    const name = uniqueName();
    const subject = uniqueSubject();
    const older = await registry.register(subject, recordOf(name, [ID]), 'FULL_TRANSITIVE');
    const newer = await registry.register(subject, recordOf(name, [ID, COUNT]), 'FULL_TRANSITIVE');
    expect(newer).not.toBe(older);
    expect(await registry.schemaById(older)).not.toContain('count');
    expect(await registry.schemaById(newer)).toContain('count');
    expect(await registry.register(subject, recordOf(name, [ID]), 'FULL_TRANSITIVE')).toBe(older);
  });

  it.each([
    { change: 'a field without default', fields: [ID, { name: 'extra', type: 'int' }] },
    { change: 'a field gone that had no default', fields: [COUNT] },
    { change: 'another type', fields: [{ name: 'id', type: 'int' }] },
  ])('FULL_TRANSITIVE refuses $change', async ({ fields }) => {
    const registry = connect();
    const name = uniqueName();
    const subject = uniqueSubject();
    await registry.register(subject, recordOf(name, [ID]), 'FULL_TRANSITIVE');
    await expect(registry.register(subject, recordOf(name, fields), 'FULL_TRANSITIVE')).rejects.toMatchObject(
      {
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(subject),
      },
    );
  });

  it('FULL_TRANSITIVE holds a version against all before it, not only the last', async () => {
    const registry = connect();
    const name = uniqueName();
    const subject = uniqueSubject();
    await registry.register(subject, recordOf(name, [ID, COUNT]), 'FULL_TRANSITIVE');
    await registry.register(subject, recordOf(name, [ID]), 'FULL_TRANSITIVE');
    const retyped = recordOf(name, [ID, { name: 'count', type: 'string', default: '' }]);
    await expect(registry.register(subject, retyped, 'FULL_TRANSITIVE')).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
    });
  });

  it('BACKWARD lets a field go', async () => {
    const registry = connect();
    const name = uniqueName();
    const subject = uniqueSubject();
    await registry.register(subject, recordOf(name, [ID, { name: 'extra', type: 'int' }]), 'BACKWARD');
    await expect(registry.register(subject, recordOf(name, [ID]), 'BACKWARD')).resolves.toBeGreaterThan(0);
  });

  it('refuses a subject whose compatibility is another, and says what to do', async () => {
    const registry = connect();
    const schema = recordOf(uniqueName(), [ID]);
    const subject = uniqueSubject();
    await registry.register(subject, schema, 'BACKWARD');
    await expect(registry.register(subject, schema, 'FULL_TRANSITIVE')).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('FULL_TRANSITIVE'),
    });
  });

  it('refuses what is no Avro schema', async () => {
    await expect(connect().register(uniqueSubject(), '{"type":"record"}', 'BACKWARD')).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
    });
  });

  it('answers undefined for an id that nobody registered', async () => {
    expect(await connect().schemaById(2_147_483_647)).toBeUndefined();
  });

  it('takes every schema of millrace', async () => {
    const registry = connect();
    for (const schema of Object.values(SCHEMAS)) {
      const id = await registry.register(uniqueSubject(), schema, 'FULL_TRANSITIVE');
      const text = await registry.schemaById(id);
      expect(text === undefined ? undefined : parseType(text).equals(parseType(schema))).toBe(true);
    }
  });
});

it('a stock client on the same registry writes what we read, and reads what we write', async () => {
  const url = registryUrl();
  const codecs = await registeredCodecs({ registry: confluentSchemaRegistry({ url }) });
  const stock = new StockClient({ host: url });
  for (const record of RECORD_NAMES) {
    const schema = JSON.parse(SCHEMAS[record].replaceAll(/,"doc":"(?:[^"\\]|\\.)*"/g, ''));
    const { id } = await stock.register(schema, { subject: uniqueSubject() });
    const bytes = await stock.encode(id, EXAMPLES[record]);
    expect(await decodeLearning(codecs, record, bytes)).toEqual({ status: 'ok', value: EXAMPLES[record] });
    expect(await stock.decode(codecs.for(record).encode(EXAMPLES[record] as never))).toEqual(
      EXAMPLES[record],
    );
  }
});

describe('confluent: what is the registry’s fault and what is the record’s', () => {
  const servers: Server[] = [];

  async function serve(status: number, body: string): Promise<string> {
    const server = createServer((_request, response) => {
      if (status === 0) return;
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  });

  it.each([
    { what: 'no answer', status: 0, body: '' },
    { what: 'an error of the registry', status: 500, body: '{"error_code":50001,"message":"store"}' },
    { what: 'an overloaded registry', status: 429, body: '{"error_code":42901,"message":"slow down"}' },
    { what: "a proxy's page", status: 404, body: '<html>no such page</html>' },
    { what: 'a wrong path', status: 404, body: '{"error_code":404,"message":"HTTP 404 Not Found"}' },
    { what: 'refused credentials', status: 401, body: '{"error_code":401,"message":"Unauthorized"}' },
  ])('$what is REGISTRY_UNAVAILABLE', async ({ status, body }) => {
    const registry = confluentSchemaRegistry({ url: await serve(status, body), timeoutMs: 200 });
    await expect(registry.schemaById(7)).rejects.toMatchObject({
      code: 'REGISTRY_UNAVAILABLE',
      retryable: true,
    });
  });

  it('a request that was lost is asked once more', async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      if (asked === 1) return;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ schema: '"string"' }));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const registry = confluentSchemaRegistry({ url, timeoutMs: 200 });
    expect(await registry.schemaById(7)).toBe('"string"');
    expect(asked).toBe(2);
  });

  it('a closed port is REGISTRY_UNAVAILABLE, for both calls', async () => {
    const url = await serve(200, '');
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    const registry = confluentSchemaRegistry({ url });
    await expect(registry.schemaById(7)).rejects.toMatchObject({ code: 'REGISTRY_UNAVAILABLE' });
    await expect(registry.register('s-value', recordOf('R', [ID]), 'BACKWARD')).rejects.toMatchObject({
      code: 'REGISTRY_UNAVAILABLE',
    });
  });

  it('"schema not found" in the registry’s own words is an answer', async () => {
    const url = await serve(404, '{"error_code":40403,"message":"Schema 7 not found"}');
    expect(await confluentSchemaRegistry({ url }).schemaById(7)).toBeUndefined();
  });

  it.each([
    { what: 'a schema of another kind', body: { schemaType: 'JSON', schema: '{"type":"object"}' } },
    { what: 'a schema that does not compile', body: { schema: '{"type":"record","name":"R"}' } },
  ])('$what is UNKNOWN_SCHEMA: asking again does not help', async ({ body }) => {
    const url = await serve(200, JSON.stringify(body));
    await expect(confluentSchemaRegistry({ url }).schemaById(7)).rejects.toMatchObject({
      code: 'UNKNOWN_SCHEMA',
      retryable: false,
    });
  });

  it('never shows the password of its URL', async () => {
    const url = 'http://user:secret@127.0.0.1:9';
    await expect(confluentSchemaRegistry({ url }).schemaById(7)).rejects.toMatchObject({
      message: expect.not.stringContaining('secret'),
    });
  });
});
