import { SchemaRegistry as StockClient } from '@kafkajs/confluent-schema-registry';
import { beforeEach, describe, expect, it } from 'vitest';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { confluentSchemaRegistry } from '../../src/adapters/registry/confluent.ts';
import { parseType } from '../../src/contracts/avro-type.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import type { SchemaRegistry } from '../../src/ports/schema-registry.ts';
import { EXAMPLES } from '../contract/examples.ts';
import { decodeLearning, RECORD_NAMES, registeredCodecs } from '../contract/fixture.ts';
import { registryThreads } from '../registry-threads.ts';

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

beforeEach(({ onTestFailed }) => {
  onTestFailed(async () => console.log(await registryThreads()));
});

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
