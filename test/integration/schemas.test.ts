import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RequestIdentity } from '../../src/core/outcome/identity.ts';
import { eventually } from '../slow/real-pipeline.ts';
import { type InProcessPipeline, startInProcessPipeline } from './in-process-pipeline.ts';
import { openResultsByIdentity, type ResultsByIdentity } from './results-by-identity.ts';
import {
  type Encode,
  encoder,
  frame,
  openStockClient,
  type RecordSchema,
  readSchema,
  requestFor,
  type StockClient,
} from './stock-client.ts';

const PARTITIONS = 4;
/** The caches that read requests: the extractor's and the worker's. The router never does. */
const READERS_OF_REQUESTS = 2;

let pipeline: InProcessPipeline;
let stock: StockClient;
let results: ResultsByIdentity;
let ingress: string;
let encode: Encode;
let schemas = 0;

beforeAll(async () => {
  pipeline = await startInProcessPipeline({ 'worker.backend': 'immediate', 'kafka.partitions': PARTITIONS });
  ingress = pipeline.topics.ingress();
  stock = await openStockClient();
  results = await openResultsByIdentity(pipeline.client, [ingress]);
  const schema = readSchema('score-request.v1');
  encode = encoder(schema, await stock.register(`${ingress}-value`, schema));
});

afterAll(async () => {
  await results.close();
  await stock.close();
  await pipeline.close();
});

async function send(partition: number, ...values: (Buffer | null)[]): Promise<RequestIdentity[]> {
  return stock.produce(
    ingress,
    partition,
    values.map((value) => ({ key: 'some key', value })),
  );
}

/** A schema that nobody has seen yet. */
async function newSchema(
  change: (schema: RecordSchema) => RecordSchema = (schema) => schema,
): Promise<{ id: number; encode: Encode }> {
  schemas += 1;
  const schema = change(readSchema('score-request.v1'));
  const fields = [...schema.fields, { name: `added${schemas}`, type: 'int', default: 0 }];
  const id = await stock.register(`${ingress}-version-${schemas}`, { ...schema, fields });
  return { id, encode: encoder({ ...schema, fields }, id) };
}

function committed(partition: number): Promise<number> {
  const group = `${pipeline.topics.prefix}.feature-extractor`;
  return pipeline.client.bus.admin.committed(group, ingress).then((offsets) => offsets.get(partition) ?? -1);
}

async function expectScored(identities: readonly (RequestIdentity | undefined)[]): Promise<void> {
  for (const identity of identities) {
    if (identity === undefined) throw new Error('nothing was produced');
    expect((await results.first(identity)).result).toMatchObject({ outcome: 'SCORED', candidatesScored: 3 });
  }
}

describe('the registry is away', () => {
  it('a record of an unknown schema waits, uncommitted and no dead letter; known schemas go on, on its partition too; all is well when the registry is back', async () => {
    const { registry, telemetry } = pipeline;
    const writer = await newSchema();
    registry.switchOff();
    const [before, waiting, alsoWaiting, behind] = await send(
      0,
      encode(requestFor('before')),
      writer.encode(requestFor('waiting')),
      writer.encode(requestFor('also waiting')),
      encode(requestFor('behind')),
    );
    const [elsewhere] = await send(1, encode(requestFor('elsewhere')));
    await expectScored([before, behind, elsewhere]);
    await eventually(() => registry.lookUps(writer.id) >= 3, 'the schema is asked for again and again');
    if (waiting === undefined || alsoWaiting === undefined || behind === undefined)
      throw new Error('nothing was produced');
    for (const identity of [waiting, alsoWaiting]) {
      expect(results.of(identity)).toEqual([]);
      expect(results.deadLettersOf(identity)).toEqual([]);
    }
    expect(await committed(0)).toBeLessThanOrEqual(waiting.offset);
    const warnings = telemetry.logs.filter(({ fields }) => fields['schemaId'] === writer.id);
    expect(warnings).toHaveLength(1);

    registry.switchOn();
    await expectScored([waiting, alsoWaiting]);
    expect(results.deadLettersOf(waiting)).toEqual([]);
    await eventually(
      async () => (await committed(0)) === behind.offset + 1,
      'the partition is committed to its end',
    );
  });

  it('an id that turns out not to exist becomes a dead letter only once the registry says so', async () => {
    const { registry } = pipeline;
    const missing = 0x7fff_0001;
    registry.switchOff();
    const [identity] = await send(2, Buffer.concat([frame(missing), Buffer.from('body')]));
    if (identity === undefined) throw new Error('nothing was produced');
    await eventually(() => registry.lookUps(missing) >= 2, 'the schema is asked for again');
    expect(results.of(identity)).toEqual([]);
    registry.switchOn();
    expect((await results.first(identity)).result).toMatchObject({
      outcome: 'DEAD_LETTERED',
      reason: { code: 'UNKNOWN_SCHEMA', message: expect.stringContaining(String(missing)) },
    });
    await eventually(() => results.deadLettersOf(identity).length === 1, 'the dead letter');
  });
});

describe('unknown and newer versions of a schema', () => {
  it('a field added, an enum symbol that nobody here knows: read without a restart', async () => {
    const writer = await newSchema((schema) => ({
      ...schema,
      fields: schema.fields.map((field) =>
        field.name === 'optOut'
          ? {
              ...field,
              type: {
                type: 'array',
                items: {
                  type: 'enum',
                  name: 'OptOut',
                  symbols: ['UNKNOWN', 'RMA', 'SHADOWING'],
                  default: 'UNKNOWN',
                },
              },
            }
          : field,
      ),
    }));
    await expectScored(await send(3, writer.encode({ ...requestFor('newer'), optOut: ['SHADOWING'] })));
  });

  it.each([
    { what: 'a field of another type', field: 'requestId', type: 'int', value: 7 },
    { what: 'a map that became a text', field: 'hints', type: 'string', value: 'x' },
  ])('$what: a dead letter that names schema and field', async ({ field, type, value }) => {
    const writer = await newSchema((schema) => ({
      ...schema,
      fields: schema.fields.map((each) => (each.name === field ? { name: field, type } : each)),
    }));
    const [bad, good] = await send(
      3,
      writer.encode({ ...requestFor('r'), [field]: value }),
      encode(requestFor('good')),
    );
    if (bad === undefined) throw new Error('nothing was produced');
    const { result } = await results.first(bad);
    expect(result).toMatchObject({ outcome: 'DEAD_LETTERED', reason: { code: 'UNKNOWN_SCHEMA' } });
    expect(result.reason?.message).toContain(`schema id ${writer.id}`);
    expect(result.reason?.message).toContain(field);
    await expectScored([good]);
  });
});

describe('public reports', () => {
  it.each([1, 2, 3, 4, 5])(
    'RangeError on a short value (confluent-schema-registry#207): %i bytes are a dead letter with a reason',
    async (length) => {
      const bytes = encode(requestFor('short')).subarray(0, length);
      const [bad, good] = await send(1, bytes, encode(requestFor('good')));
      if (bad === undefined) throw new Error('nothing was produced');
      const { result } = await results.first(bad);
      expect(result.outcome).toBe('DEAD_LETTERED');
      expect(result.reason?.code).toBe(length < 5 ? 'NO_FRAME' : 'MALFORMED');
      expect(result.reason?.message).not.toContain('RangeError');
      await expectScored([good]);
    },
  );

  it('a burst of connections on concurrent cold decodes (confluent-schema-registry#247): one look-up per process', async () => {
    const writer = await newSchema();
    const values = Array.from({ length: 50 }, (_, index) => writer.encode(requestFor(`cold ${index}`)));
    const sent = await Promise.all([0, 1, 2, 3].map((partition) => send(partition, ...values)));
    await expectScored(sent.flat());
    expect(pipeline.registry.lookUps(writer.id)).toBe(READERS_OF_REQUESTS);
  });

  it('decoding throws on a tombstone (confluent-kafka-dotnet#905): a dead letter, and no look-up', async () => {
    const lookUps = pipeline.registry.lookUps();
    const [tombstone, good] = await send(2, null, encode(requestFor('good')));
    if (tombstone === undefined) throw new Error('nothing was produced');
    expect((await results.first(tombstone)).result.reason?.code).toBe('EMPTY_VALUE');
    await expectScored([good]);
    expect(pipeline.registry.lookUps()).toBe(lookUps);
  });
});
