import { describe, expect, it } from 'vitest';
import { memorySchemaRegistry } from '../../../src/adapters/memory/schema-registry.ts';
import { schemaOf } from '../../../src/contracts/headers.ts';
import { makeScoreRequest, type ScoreRequest } from '../../../src/contracts/records.ts';
import { SCHEMAS } from '../../../src/contracts/schemas.ts';
import type { SchemaRegistry } from '../../../src/ports/schema-registry.ts';
import { EXAMPLES } from '../../contract/examples.ts';
import { decodeLearning, framed, handClock, RECORD_NAMES, registeredCodecs } from '../../contract/fixture.ts';

const REQUEST = makeScoreRequest({ requestId: 'r', model: 'm', baselineCandidates: 0 });
const NEWER = newerRequest();

function newerRequest(): string {
  const schema = JSON.parse(SCHEMAS.ScoreRequest) as { fields: unknown[] };
  schema.fields.splice(3, 0, { name: 'locale', type: 'string', default: 'en' });
  return JSON.stringify(schema);
}

function counted(inner: SchemaRegistry): { registry: SchemaRegistry; lookUps: number[] } {
  const lookUps: number[] = [];
  const schemaById = (id: number): Promise<string | undefined> => {
    lookUps.push(id);
    return inner.schemaById(id);
  };
  return { registry: { ...inner, schemaById }, lookUps };
}

describe('a fingerprint', () => {
  /** A registry in which other schemas came first: every id of ours means something else than in `memorySchemaRegistry()`. */
  async function shifted(by: number): Promise<SchemaRegistry> {
    const registry = memorySchemaRegistry();
    for (let n = 0; n < by; n += 1)
      await registry.register(`o${n}-value`, `{"type":"record","name":"O${n}","fields":[]}`, 'BACKWARD');
    return registry;
  }

  it.each(RECORD_NAMES)('reads %s whatever its id means here, without a look-up', async (record) => {
    const writer = (await registeredCodecs()).for(record);
    const bytes = writer.encode(EXAMPLES[record] as never);
    for (const by of [3, 40]) {
      const { registry, lookUps } = counted(await shifted(by));
      const reader = (await registeredCodecs({ registry })).for(record);
      const plain = reader.decode(bytes);
      expect(plain.status === 'ok' && plain.value).not.toEqual(EXAMPLES[record]);
      expect(reader.decode(bytes, schemaOf(writer.headers))).toEqual({
        status: 'ok',
        value: EXAMPLES[record],
      });
      expect(lookUps).toEqual([]);
    }
  });

  /** What a newer version writes, and a reader of this one over the registry that the newer one uses now. */
  async function newer() {
    const registry = await shifted(2);
    const writer = (await registeredCodecs({ registry, schemas: { ScoreRequest: NEWER } })).for(
      'ScoreRequest',
    );
    const bytes = writer.encode({ ...REQUEST, locale: 'cs' } as ScoreRequest);
    return { registry, bytes, fingerprint: schemaOf(writer.headers) };
  }

  it('of a newer version is looked up by the id, once', async () => {
    const { bytes, fingerprint, ...theirs } = await newer();
    const { registry, lookUps } = counted(theirs.registry);
    const reader = await registeredCodecs({ registry });
    const unknown = reader.for('ScoreRequest').decode(bytes, fingerprint);
    expect(unknown).toEqual({ status: 'schema-unknown', schemaId: bytes.readInt32BE(1), fingerprint });
    if (unknown.status === 'schema-unknown') expect(await reader.learn(unknown)).toBe('learned');
    for (let n = 0; n < 3; n += 1)
      expect(reader.for('ScoreRequest').decode(bytes, fingerprint)).toEqual({ status: 'ok', value: REQUEST });
    expect(lookUps).toHaveLength(1);
  });

  it('is not needed of a schema whose id was learned', async () => {
    const { registry, bytes, fingerprint } = await newer();
    const reader = await registeredCodecs({ registry });
    await decodeLearning(reader, 'ScoreRequest', bytes);
    expect(reader.for('ScoreRequest').decode(bytes, fingerprint)).toEqual({ status: 'ok', value: REQUEST });
  });

  it('that the schema of the id does not have makes the record unreadable for a while, and no longer', async () => {
    const { bytes, fingerprint, ...theirs } = await newer();
    const state = { isRestored: false };
    const registry: SchemaRegistry = {
      ...theirs.registry,
      schemaById: async (id) => (state.isRestored ? theirs.registry.schemaById(id) : SCHEMAS.Outcome),
    };
    const clock = handClock();
    const reader = await registeredCodecs({ registry, clock });
    const read = () => reader.for('ScoreRequest').decode(bytes, fingerprint);
    const name = { schemaId: bytes.readInt32BE(1), fingerprint };
    expect(await reader.learn(name)).toBe('no-such-schema');
    expect(read()).toMatchObject({
      code: 'UNKNOWN_SCHEMA',
      message: expect.stringContaining(String(fingerprint)),
    });
    state.isRestored = true;
    clock.nowMs = 30_000;
    expect(read()).toMatchObject({ status: 'schema-unknown' });
    expect(await reader.learn(name)).toBe('learned');
    expect(read()).toEqual({ status: 'ok', value: REQUEST });
  });

  it('is told of what an id stands for, as far as it is known', async () => {
    const codecs = await registeredCodecs();
    const codec = codecs.for('ScoreRequest');
    expect(codecs.fingerprintIn(codec.encode(REQUEST))).toBe(schemaOf(codec.headers));
    for (const bytes of [null, Buffer.alloc(0), Buffer.from('?????'), framed(99, Buffer.of(0))])
      expect(codecs.fingerprintIn(bytes)).toBe('');
  });
});
