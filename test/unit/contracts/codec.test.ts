import { describe, expect, it } from 'vitest';
import { memorySchemaRegistry } from '../../../src/adapters/memory/schema-registry.ts';
import { createCodecs } from '../../../src/contracts/codec.ts';
import {
  makeDispatch,
  makeOutcome,
  makeScoreRequest,
  type ScoreRequest,
} from '../../../src/contracts/records.ts';
import { SCHEMAS } from '../../../src/contracts/schemas.ts';
import { TOPICS } from '../../../src/contracts/topics.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import type { SchemaRegistry } from '../../../src/ports/schema-registry.ts';
import { EXAMPLES } from '../../contract/examples.ts';
import { decodeLearning, framed, handClock, registeredCodecs } from '../../contract/fixture.ts';

const REQUEST = makeScoreRequest({ requestId: 'r', model: 'm', baselineCandidates: 0 });

/** A schema of ScoreRequest, changed. */
function changed(change: (fields: { name: string; [attribute: string]: unknown }[]) => void): string {
  const schema = JSON.parse(SCHEMAS.ScoreRequest) as { fields: { name: string }[] };
  change(schema.fields);
  return JSON.stringify(schema);
}
const NEWER = changed((fields) => {
  fields.splice(3, 0, { name: 'locale', type: 'string', default: 'en' });
  fields.push({ name: 'samples', type: { type: 'array', items: 'bytes' }, default: [] });
});
const OLDER = changed((fields) => {
  const kept = fields.filter(({ name }) => name !== 'region' && name !== 'explain');
  fields.splice(0, fields.length, ...kept);
});

/** A registry whose look-ups are counted, and answered when the test says so. */
function controlledRegistry(inner: SchemaRegistry = memorySchemaRegistry()) {
  const lookUps: number[] = [];
  const state = { down: false, hold: Promise.resolve() as Promise<void> };
  const registry: SchemaRegistry = {
    register: (subject, schema, compatibility) => inner.register(subject, schema, compatibility),
    async schemaById(id) {
      lookUps.push(id);
      await state.hold;
      if (state.down) throw new MillraceError('REGISTRY_UNAVAILABLE', 'away');
      return inner.schemaById(id);
    },
  };
  return { registry, lookUps, state };
}

describe('the frame', () => {
  it('is a zero byte and the schema id, big-endian', async () => {
    const registry = memorySchemaRegistry();
    for (let i = 0; i < 300; i++)
      await registry.register(`s${i}`, `{"type":"record","name":"R${i}","fields":[]}`, 'BACKWARD');
    const bytes = (await registeredCodecs({ registry })).for('Outcome').encode(EXAMPLES.Outcome);
    expect(bytes[0]).toBe(0);
    expect(bytes.readInt32BE(1)).toBeGreaterThan(300);
    expect(await registry.schemaById(bytes.readInt32BE(1))).toBe(SCHEMAS.Outcome);
  });

  it.each([
    ['a tombstone', null, 'EMPTY_VALUE'],
    ['an empty value', Buffer.alloc(0), 'EMPTY_VALUE'],
    ['JSON', Buffer.from('{"requestId":"r"}'), 'NO_FRAME'],
    ['one byte', Buffer.of(0), 'NO_FRAME'],
    ['a frame cut short', Buffer.of(0, 0, 0, 1), 'NO_FRAME'],
    ['a frame and nothing else', framed(1, Buffer.alloc(0)), 'MALFORMED'],
    ['a schema id of 0', framed(0, Buffer.of(1)), 'UNKNOWN_SCHEMA'],
    ['a negative schema id', framed(-7, Buffer.of(1)), 'UNKNOWN_SCHEMA'],
    ['more bytes than allowed', framed(1, Buffer.alloc(1024 * 1024 - 4)), 'TOO_LARGE'],
  ])('%s is unreadable', async (_, bytes, code) => {
    const codecs = await registeredCodecs();
    expect(codecs.for('ScoreRequest').decode(bytes)).toMatchObject({ status: 'unreadable', code });
  });

  it('a tombstone needs no look-up', async () => {
    const { registry, lookUps } = controlledRegistry();
    const codecs = await registeredCodecs({ registry });
    codecs.for('PoolStatus').decode(null);
    expect(lookUps).toEqual([]);
  });
});

describe('encode', () => {
  it('needs a registered schema', () => {
    const codecs = createCodecs({ registry: memorySchemaRegistry(), clock: handClock() });
    expect(() => codecs.for('ScoreRequest').encode(REQUEST)).toThrow(
      /ScoreRequest has no schema id yet.*register/,
    );
  });

  it.each([0, 10, 127, 128, 5_000, 60_000, 300_000])(
    'writes %i bytes of text, before and after it met other sizes',
    async (size) => {
      const codec = (await registeredCodecs()).for('ScoreRequest');
      for (const length of [size, 3, size, 0, size]) {
        const value = { ...REQUEST, context: { text: 'é'.repeat(length) } };
        expect(codec.decode(codec.encode(value))).toEqual({ status: 'ok', value });
      }
    },
  );

  it('takes little more memory than the record', async () => {
    const codec = (await registeredCodecs()).for('Dispatch');
    const value = { ...EXAMPLES.Dispatch, payload: Buffer.alloc(32_768) };
    for (let i = 0; i < 100; i++) codec.encode(value);
    codec.encode({ ...value, trace: 'x'.repeat(100_000) });
    for (let i = 0; i < 200; i++) codec.encode(value);
    const bytes = codec.encode(value);
    expect(bytes.buffer.byteLength - bytes.length).toBeLessThan(256);
  });

  it.each<[string, Partial<Record<keyof ScoreRequest, unknown>>, string]>([
    ['a missing field', { requestId: undefined }, 'ScoreRequest.requestId'],
    ['bytes of another kind', { candidateValues: new Uint8Array(50_000) }, 'ScoreRequest.candidateValues'],
    ['a fraction', { baselineCandidates: 1.5 }, 'ScoreRequest.baselineCandidates'],
    ['another symbol', { optOut: ['RMB'] }, 'ScoreRequest.optOut.0'],
    ['a symbol that every object has', { optOut: ['toString'] }, 'ScoreRequest.optOut.0'],
    ['a BigInt', { priority: 1n }, 'ScoreRequest.priority'],
    ['text where a tensor should be', { requestTensors: ['x'] }, 'ScoreRequest.requestTensors.0'],
    ['a long that would be written wrong', { featuresAsOf: -(2 ** 52) - 2 }, 'ScoreRequest.featuresAsOf'],
  ])('names the field of %s, shortly', async (_, fields, place) => {
    const codec = (await registeredCodecs()).for('ScoreRequest');
    const encode = (): Buffer => codec.encode({ ...REQUEST, ...fields } as ScoreRequest);
    expect(encode).toThrow(MillraceError);
    expect(encode).toThrow(
      expect.objectContaining({ code: 'MALFORMED', message: expect.stringContaining(place) }),
    );
    expect(encode).toThrow(expect.objectContaining({ message: expect.not.stringMatching(/.{300}/) }));
  });

  it('refuses what no reader would take', async () => {
    const codecs = await registeredCodecs({ limits: { bytesMax: 1_000, envelopeBytesMax: 500 } });
    const candidateValues = Buffer.alloc(1_000);
    expect(() => codecs.for('ScoreRequest').encode({ ...REQUEST, candidateValues })).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }),
    );
  });
});

describe('limits', () => {
  it('a request of the greatest size still fits into the records that carry it', async () => {
    const codecs = await registeredCodecs({ limits: { bytesMax: 1_000, envelopeBytesMax: 500 } });
    const payload = Buffer.alloc(1_000);
    const dispatch = makeDispatch({ ...EXAMPLES.Dispatch, payload, trace: null });
    const decoded = codecs.for('Dispatch').decode(codecs.for('Dispatch').encode(dispatch));
    expect(decoded).toEqual({ status: 'ok', value: dispatch });
    const schemaId = codecs.for('ScoreRequest').encode(REQUEST).readInt32BE(1);
    expect(codecs.for('ScoreRequest').decode(framed(schemaId, Buffer.alloc(996)))).toMatchObject({
      code: 'TOO_LARGE',
    });
  });
});

describe('bytes fields', () => {
  it('are views of the record, not copies', async () => {
    const codec = (await registeredCodecs()).for('Dispatch');
    const bytes = codec.encode({ ...EXAMPLES.Dispatch, payload: Buffer.from('payload') });
    const decoded = codec.decode(bytes);
    const payload = decoded.status === 'ok' ? decoded.value.payload : Buffer.alloc(0);
    expect(payload.buffer).toBe(bytes.buffer);
    expect(payload.toString()).toBe('payload');
  });

  it('are views through a resolver too', async () => {
    const registry = memorySchemaRegistry();
    const newer = await registeredCodecs({ registry, schemas: { ScoreRequest: NEWER } });
    const codecs = await registeredCodecs({ registry: memoryAfter(registry) });
    const bytes = newer.for('ScoreRequest').encode({ ...REQUEST, candidateValues: Buffer.from('values') });
    const decoded = await decodeLearning(codecs, 'ScoreRequest', bytes);
    expect(decoded.status === 'ok' && decoded.value.candidateValues?.buffer).toBe(bytes.buffer);
  });
});

/** The same registry for a process that registers under subjects of its own. */
function memoryAfter(registry: SchemaRegistry): SchemaRegistry {
  return {
    register: (subject, schema, compatibility) =>
      registry.register(`second-${subject}`, schema, compatibility),
    schemaById: (id) => registry.schemaById(id),
  };
}

describe('records of other writers', () => {
  async function twoVersions(schema: string) {
    const inner = memorySchemaRegistry();
    const writer = await registeredCodecs({ registry: inner, schemas: { ScoreRequest: schema } });
    const controlled = controlledRegistry(memoryAfter(inner));
    const reader = await registeredCodecs({ registry: controlled.registry });
    return { writer, reader, ...controlled };
  }

  it('a newer producer: added fields are passed over, without a restart', async () => {
    const { writer, reader } = await twoVersions(NEWER);
    const value = { ...EXAMPLES.ScoreRequest, locale: 'cs', samples: [Buffer.alloc(9), Buffer.alloc(3)] };
    const bytes = writer.for('ScoreRequest').encode(value);
    expect(reader.for('ScoreRequest').decode(bytes)).toEqual({
      status: 'schema-unknown',
      schemaId: bytes.readInt32BE(1),
    });
    expect(await decodeLearning(reader, 'ScoreRequest', bytes)).toEqual({
      status: 'ok',
      value: EXAMPLES.ScoreRequest,
    });
  });

  it('an older producer: what it did not know has its default', async () => {
    const { writer, reader } = await twoVersions(OLDER);
    const bytes = writer.for('ScoreRequest').encode(EXAMPLES.ScoreRequest);
    const value = { ...EXAMPLES.ScoreRequest, region: null, explain: false };
    expect(await decodeLearning(reader, 'ScoreRequest', bytes)).toEqual({ status: 'ok', value });
  });

  it('a new symbol of an enum is read as its default', async () => {
    const schema = SCHEMAS.Outcome.replace('"RETRACT"', '"RETRACT","SHARE"');
    const inner = memorySchemaRegistry();
    const writer = await registeredCodecs({ registry: inner, schemas: { Outcome: schema } });
    const reader = await registeredCodecs({ registry: memoryAfter(inner) });
    const bytes = writer
      .for('Outcome')
      .encode(makeOutcome({ outcomeId: 'o', type: 'SHARE' as 'CLICK', occurredAt: 1 }));
    expect(await decodeLearning(reader, 'Outcome', bytes)).toMatchObject({
      status: 'ok',
      value: { type: 'UNKNOWN' },
    });
  });

  it.each([
    ['without docs', SCHEMAS.ScoreRequest.replaceAll(/,"doc":"(?:[^"\\]|\\.)*"/g, '')],
    ['under a namespace of its own', SCHEMAS.ScoreRequest.replace('"millrace.v1"', '"com.example"')],
  ])("a stock client's own copy of the schema, %s", async (_, schema) => {
    const { writer, reader } = await twoVersions(schema);
    const bytes = writer.for('ScoreRequest').encode(EXAMPLES.ScoreRequest);
    expect(reader.for('ScoreRequest').decode(bytes).status).toBe('schema-unknown');
    expect(await decodeLearning(reader, 'ScoreRequest', bytes)).toEqual({
      status: 'ok',
      value: EXAMPLES.ScoreRequest,
    });
  });

  it.each([
    ['of another record', SCHEMAS.Outcome, 'does not resolve'],
    [
      'that lacks a field',
      '{"type":"record","name":"ScoreRequest","namespace":"millrace.v1","fields":[]}',
      'requestId',
    ],
    [
      'with a field of another type',
      SCHEMAS.ScoreRequest.replace(
        '"name":"baselineCandidates","type":"int"',
        '"name":"baselineCandidates","type":"string"',
      ),
      'ScoreRequest.baselineCandidates: cannot read "string" as "int"',
    ],
    ['that is no record', '"bytes"', 'does not resolve'],
    ['that is no JSON', 'message ScoreRequest {}', 'cannot be used'],
    ['that is no Avro', '{"type":"object","properties":{}}', 'cannot be used'],
    [
      'that nests ten thousand arrays',
      `${'{"type":"array","items":'.repeat(10_000)}"null"${'}'.repeat(10_000)}`,
      'cannot be used',
    ],
    ['that is too long', `"${'x'.repeat(300_000)}"`, 'cannot be used'],
    [
      'that names a type of the prototype',
      '{"type":"record","name":"R","fields":[{"name":"f","type":"constructor"}]}',
      'cannot be used',
    ],
    ['with a field __proto__', SCHEMAS.ScoreRequest.replace('"requestId"', '"__proto__"'), 'requestId'],
  ])('a schema %s is unreadable, with the reason', async (_, schema, reason) => {
    const registry: SchemaRegistry = { register: async () => 1, schemaById: async () => schema };
    const codecs = createCodecs({ registry, clock: handClock() });
    expect(await codecs.learn({ schemaId: 77 })).toBe('learned');
    const decoded = codecs.for('ScoreRequest').decode(framed(77, Buffer.of(0, 0)));
    expect(decoded).toMatchObject({
      status: 'unreadable',
      code: 'UNKNOWN_SCHEMA',
      message: expect.stringContaining(reason),
    });
    expect(decoded).toMatchObject({ message: expect.not.stringMatching(/.{500}/) });
    expect(({} as { type?: unknown }).type).toBeUndefined();
  });

  it('a schema that the registry knows to be no Avro is unreadable', async () => {
    const registry: SchemaRegistry = {
      register: async () => 1,
      schemaById: () => Promise.reject(new MillraceError('UNKNOWN_SCHEMA', 'the schema 5 is no Avro schema')),
    };
    const codecs = createCodecs({ registry, clock: handClock() });
    expect(await codecs.learn({ schemaId: 5 })).toBe('learned');
    expect(codecs.for('Outcome').decode(framed(5, Buffer.of(0)))).toMatchObject({
      code: 'UNKNOWN_SCHEMA',
      message: expect.stringContaining('no Avro schema'),
    });
  });

  it("bombs in fields that only the writer's schema has are refused", async () => {
    const schema = changed((fields) =>
      fields.push({ name: 'bomb', type: { type: 'array', items: 'null' }, default: [] }),
    );
    const { writer, reader } = await twoVersions(schema);
    const bytes = writer.for('ScoreRequest').encode(EXAMPLES.ScoreRequest);
    // the last byte is the end of the empty array: in its place 5·10⁷ nulls, and their end
    const bomb = Buffer.concat([bytes.subarray(0, -1), Buffer.from('80c2d72f00', 'hex')]);
    await decodeLearning(reader, 'ScoreRequest', bytes);
    expect(reader.for('ScoreRequest').decode(bomb)).toMatchObject({
      status: 'unreadable',
      code: 'TOO_LARGE',
    });
  });
});

describe('learning', () => {
  const bytes = framed(99, Buffer.of(0));

  it('asks the registry once, however many wait', async () => {
    const { registry, lookUps, state } = controlledRegistry();
    const codecs = await registeredCodecs({ registry });
    let release = (): void => undefined;
    state.hold = new Promise((resolve) => {
      release = resolve;
    });
    const waiting = Array.from({ length: 50 }, () => codecs.learn({ schemaId: 99 }));
    release();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['no-such-schema']));
    expect(lookUps).toEqual([99]);
  });

  it('believes "no such schema" for 30 s, then asks again', async () => {
    const { registry, lookUps } = controlledRegistry();
    const clock = handClock();
    const codecs = await registeredCodecs({ registry, clock });
    expect(codecs.for('Outcome').decode(bytes)).toEqual({ status: 'schema-unknown', schemaId: 99 });
    expect(await codecs.learn({ schemaId: 99 })).toBe('no-such-schema');
    clock.nowMs = 29_999;
    expect(await codecs.learn({ schemaId: 99 })).toBe('no-such-schema');
    expect(codecs.for('Outcome').decode(bytes)).toMatchObject({
      status: 'unreadable',
      code: 'UNKNOWN_SCHEMA',
    });
    expect(lookUps).toEqual([99]);
    clock.nowMs = 30_000;
    expect(codecs.for('Outcome').decode(bytes)).toMatchObject({ status: 'schema-unknown' });
    await codecs.learn({ schemaId: 99 });
    expect(lookUps).toEqual([99, 99]);
  });

  it('a registry that is away is not believed: the record waits, and goes on when it is back', async () => {
    const inner = memorySchemaRegistry();
    const writer = await registeredCodecs({ registry: inner, schemas: { ScoreRequest: NEWER } });
    const { registry, lookUps, state } = controlledRegistry(memoryAfter(inner));
    const reader = await registeredCodecs({ registry });
    const record = writer
      .for('ScoreRequest')
      .encode({ ...REQUEST, locale: 'cs', samples: [] } as ScoreRequest);
    const schemaId = record.readInt32BE(1);
    state.down = true;
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(reader.learn({ schemaId })).rejects.toMatchObject({ code: 'REGISTRY_UNAVAILABLE' });
      expect(reader.for('ScoreRequest').decode(record)).toEqual({ status: 'schema-unknown', schemaId });
    }
    const known = reader.for('ScoreRequest').encode(REQUEST);
    expect(reader.for('ScoreRequest').decode(known)).toEqual({ status: 'ok', value: REQUEST });
    state.down = false;
    expect(await decodeLearning(reader, 'ScoreRequest', record)).toEqual({ status: 'ok', value: REQUEST });
    expect(lookUps).toHaveLength(3);
  });

  it('remembers a bounded number of missing ids', async () => {
    const { registry, lookUps } = controlledRegistry();
    const codecs = await registeredCodecs({ registry });
    for (let id = 1_000; id < 3_000; id++) await codecs.learn({ schemaId: id });
    expect(codecs.for('Outcome').decode(framed(2_999, Buffer.of(0))).status).toBe('unreadable');
    expect(codecs.for('Outcome').decode(framed(1_000, Buffer.of(0))).status).toBe('schema-unknown');
    expect(lookUps).toHaveLength(2_000);
  });
});

describe('register', () => {
  it('registers each topic under <topic>-value with its compatibility', async () => {
    const calls: unknown[] = [];
    const registry: SchemaRegistry = {
      register: async (...call) => calls.push(call),
      schemaById: async () => undefined,
    };
    const codecs = createCodecs({ registry, clock: handClock() });
    await codecs.register([
      ['millrace.ingress.v1', TOPICS.ingress],
      ['millrace.ingress.acme.v1', TOPICS.ingress],
    ]);
    expect(calls).toEqual([
      ['millrace.ingress.v1-value', SCHEMAS.ScoreRequest, 'FULL_TRANSITIVE'],
      ['millrace.ingress.acme.v1-value', SCHEMAS.ScoreRequest, 'FULL_TRANSITIVE'],
    ]);
  });

  it('a registry that gives one schema several ids: the first is written, all are read', async () => {
    let id = 10;
    const registry: SchemaRegistry = { register: async () => ++id, schemaById: async () => undefined };
    const codecs = createCodecs({ registry, clock: handClock() });
    await codecs.register([
      ['a', TOPICS.outcomes],
      ['b', TOPICS.outcomes],
    ]);
    const codec = codecs.for('Outcome');
    const bytes = codec.encode(EXAMPLES.Outcome);
    expect(bytes.readInt32BE(1)).toBe(11);
    expect(codec.decode(framed(12, bytes.subarray(5)))).toEqual({ status: 'ok', value: EXAMPLES.Outcome });
  });
});

it('a record of hostile map keys leaves every prototype as it was', async () => {
  const codec = (await registeredCodecs()).for('ScoreRequest');
  const bytes = codec.encode({ ...REQUEST, context: { aaaaaaaaa: 'polluted' } });
  const at = bytes.indexOf('aaaaaaaaa');
  bytes.write('__proto__', at);
  expect(codec.decode(bytes)).toMatchObject({ status: 'unreadable', code: 'MALFORMED' });
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});
