import avro from 'avsc';
import fc from 'fast-check';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { parseType } from '../../src/contracts/avro-type.ts';
import { compileWalker, type Walker } from '../../src/contracts/bounded.ts';
import { type Codecs, createCodecs } from '../../src/contracts/codec.ts';
import { type CompiledReader, compileReader } from '../../src/contracts/compiled-reader.ts';
import { DECODE_LIMITS } from '../../src/contracts/limits.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import type { RecordName } from '../../src/contracts/topics.ts';
import { FORBIDDEN_KEYS } from '../../src/core/own.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { arbitraryRecord } from '../contract/arbitraries.ts';
import { EXAMPLES } from '../contract/examples.ts';
import { framed, handClock, RECORD_NAMES, TOPIC_OF_EACH } from '../contract/fixture.ts';
import { type Account, type Fuzzer, isPlain, runFuzzer } from './harness.ts';
import { pick } from './pick.ts';

/**
 * Fuzzing of the record decoders: valid framed records, mutated, read by the codec as a stage would. What our own schemas wrote goes through the
 * compiled reader and writer, which are held to avsc's values and bytes and to the walker's limits; what a stranger's schema wrote is walked and resolved.
 *
 *     node test/fuzz/decoders.ts --inputs 1000000 --seed 1
 */

const SAMPLES = 64;
const SAMPLES_SEED = 1;
/** Zero-byte values and fields beside those that take a byte. */
const STEPS_PER_BYTE_MAX = 8;
const STEPS_FREE = 64;

/** One writer's schema, and valid bodies of it. */
interface Source {
  record: RecordName;
  schemaId: number;
  /** Of our own schemas. */
  own: { type: avro.Type; read: CompiledReader } | undefined;
  walk: Walker;
  bodies: readonly Buffer[];
}

/** Fields that a hostile or merely newer writer may have on top of ours. */
const FOREIGN_FIELDS = [
  { name: 'nulls', type: { type: 'array', items: 'null' }, default: [] },
  { name: 'nested', type: { type: 'array', items: { type: 'array', items: 'null' } }, default: [] },
  { name: 'either', type: ['null', 'string', { type: 'map', values: 'long' }], default: null },
  {
    name: 'list',
    type: ['null', { type: 'record', name: 'Link', fields: [{ name: 'next', type: ['null', 'Link'] }] }],
    default: null,
  },
  { name: 'marks', type: { type: 'array', items: { type: 'fixed', name: 'Mark', size: 3 } }, default: [] },
];

async function sourcesOf(
  codecs: Codecs,
  registry: ReturnType<typeof memorySchemaRegistry>,
): Promise<Source[]> {
  const sources: Source[] = [];
  for (const record of RECORD_NAMES) {
    const own = codecs.for(record).encode(EXAMPLES[record] as never);
    const type = parseType(SCHEMAS[record]);
    const values = [
      EXAMPLES[record],
      ...fc.sample(arbitraryRecord(record), { numRuns: SAMPLES, seed: SAMPLES_SEED }),
    ];
    const read = compileReader(type, DECODE_LIMITS);
    if (read === undefined) throw new Error(`the reader of ${record} is not compiled`);
    const bodies = [
      ...values.flatMap((value) => [type.toBuffer(value), inBlocks(type, value)]),
      ...[...FORBIDDEN_KEYS].map((key) => type.toBuffer(withKey(type, EXAMPLES[record], key))),
    ];
    const walk = compileWalker(type, DECODE_LIMITS);
    sources.push({ record, schemaId: own.readInt32BE(1), own: { type, read }, walk, bodies });
    sources.push(await foreignSource(codecs, registry, record, values));
  }
  return sources;
}

async function foreignSource(
  codecs: Codecs,
  registry: ReturnType<typeof memorySchemaRegistry>,
  record: RecordName,
  values: readonly unknown[],
): Promise<Source> {
  const schema = JSON.parse(SCHEMAS[record]) as { fields: unknown[] };
  schema.fields.splice(2, 0, ...FOREIGN_FIELDS);
  const text = JSON.stringify(schema);
  const schemaId = await registry.register(`foreign-${record}`, text, 'FULL_TRANSITIVE');
  await codecs.learn({ schemaId });
  const type = avro.Type.forSchema(JSON.parse(text), { wrapUnions: false });
  const bodies = values.map((value) => type.toBuffer(value));
  return { record, schemaId, own: undefined, walk: compileWalker(parseType(text), DECODE_LIMITS), bodies };
}

/** The same value as another writer may put it: arrays and maps in several blocks, each with its size. The compiled reader leaves it to avsc. */
function inBlocks(type: avro.Type, value: unknown): Buffer {
  if (type instanceof avro.types.RecordType)
    return Buffer.concat(type.fields.map(({ name, type: of }) => inBlocks(of, (value as Fields)[name])));
  if (type instanceof avro.types.ArrayType)
    return blocks((value as unknown[]).map((item) => inBlocks(type.itemsType, item)));
  if (type instanceof avro.types.MapType) {
    const entries = Object.entries(value as Fields);
    return blocks(
      entries.map(([key, item]) => Buffer.concat([TEXT.toBuffer(key), inBlocks(type.valuesType, item)])),
    );
  }
  if (!(type instanceof avro.types.UnwrappedUnionType)) return type.toBuffer(value);
  const index = type.types.findIndex((branch) => (branch.typeName === 'null') === (value === null));
  const branch = type.types[index];
  return branch === undefined
    ? type.toBuffer(value)
    : Buffer.concat([LONG.toBuffer(index), inBlocks(branch, value)]);
}

/** The same value with one more entry in each of its maps. */
function withKey(type: avro.Type, value: unknown, key: string): unknown {
  if (type instanceof avro.types.RecordType)
    return Object.fromEntries(
      type.fields.map(({ name, type: of }) => [name, withKey(of, (value as Fields)[name], key)]),
    );
  if (type instanceof avro.types.ArrayType)
    return (value as unknown[]).map((item) => withKey(type.itemsType, item, key));
  if (!(type instanceof avro.types.MapType)) return value;
  const entries = Object.entries(value as Fields);
  return Object.fromEntries([...entries, ...entries.slice(0, 1).map(([, item]) => [key, item])]);
}

const TEXT = avro.Type.forSchema('string');
const LONG = avro.Type.forSchema('long');

function blocks(items: readonly Buffer[]): Buffer {
  const parts = items.flatMap((item) => [LONG.toBuffer(-1), LONG.toBuffer(item.length), item]);
  return Buffer.concat([...parts, LONG.toBuffer(0)]);
}

const BOMBS = [
  '80c2d72f',
  '80f0ace306',
  'ffffffffffffffffff01',
  'feffffff0f',
  '01',
  '80808080808080808001',
  '13',
  '904e',
].map((hex) => Buffer.from(hex, 'hex'));
const KEYS = ['__proto__', 'constructor', 'prototype'].map((key) =>
  Buffer.concat([Buffer.of(key.length * 2), Buffer.from(key)]),
);

function mutate(draw: Generator, body: Buffer, other: Buffer): Buffer {
  const at = draw.below(body.length + 1);
  const put = (inserted: Uint8Array, removed: number): Buffer =>
    Buffer.concat([body.subarray(0, at), inserted, body.subarray(Math.min(body.length, at + removed))]);
  switch (draw.below(9)) {
    case 0:
      return put(Buffer.of(draw.below(256)), 1);
    case 1:
      return put(Buffer.of((body[at] ?? 0) ^ (1 << draw.below(8))), 1);
    case 2:
      return body.subarray(0, at);
    case 3:
      return put(Buffer.of(draw.below(256), draw.below(256)), 0);
    case 4:
      return put(Buffer.alloc(0), 1 + draw.below(8));
    case 5:
      return put(pick(draw, BOMBS), draw.below(3));
    case 6:
      return put(pick(draw, KEYS), draw.below(12));
    case 7:
      return put(other.subarray(draw.below(other.length + 1)), draw.below(body.length + 1));
    default:
      return put(body.subarray(draw.below(body.length + 1)), 0);
  }
}

function breakFrame(draw: Generator, bytes: Buffer): Buffer {
  switch (draw.below(4)) {
    case 0:
      return bytes.subarray(0, draw.below(6));
    case 1:
      return bytes.subarray(1 + draw.below(4));
    case 2:
      return Buffer.concat([Buffer.of(1 + draw.below(255)), bytes.subarray(1)]);
    default: {
      const changed = Buffer.from(bytes);
      changed.writeInt32BE(draw.below(2) === 0 ? 1 + draw.below(64) : draw.below(2 ** 31) - 2 ** 30, 1);
      return changed;
    }
  }
}

function isPastLookUp(source: Source, bytes: Buffer): boolean {
  return bytes.length >= 5 && bytes[0] === 0 && bytes.readInt32BE(1) === source.schemaId;
}

function readOne(codecs: Codecs, source: Source, bytes: Buffer, account: Account): void {
  const codec = codecs.for(source.record);
  const decoded = codec.decode(bytes);
  account.outcome(decoded.status === 'unreadable' ? decoded.code : decoded.status);
  if (!isPastLookUp(source, bytes)) return;
  account.past();
  const { refusal, steps, items } = source.walk(bytes, 5);
  account.work('steps', steps, STEPS_PER_BYTE_MAX * bytes.length + STEPS_FREE);
  account.work('items', items, bytes.length + DECODE_LIMITS.zeroByteItemsMax);
  account.expect(
    (refusal === undefined) === (decoded.status === 'ok'),
    `${source.record}: the walker says ${refusal?.message ?? 'yes'}, the codec ${decoded.status}`,
  );
  if (decoded.status !== 'ok') return;
  if (source.own === undefined) return;
  const { type, read } = source.own;
  const value: unknown = type.decode(bytes, 5).value;
  const compiled = read(bytes, 5);
  account.outcome(compiled === undefined ? 'left to avsc' : 'read by the compiled reader');
  account.expect(
    compiled === undefined || (isSame(compiled, value) && isPlain(compiled)),
    `${source.record}: the compiled reader and avsc differ`,
  );
  account.expect(isSame(decoded.value, value), `${source.record}: the codec and avsc differ`);
  const written = codec.encode(decoded.value as never);
  account.expect(
    written.subarray(5).equals(type.toBuffer(value)),
    `${source.record}: written otherwise than by avsc`,
  );
}

/** avsc's records have classes of their own: the same fields, plain. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return Object.is(one, other);
  if (Buffer.isBuffer(one)) return Buffer.isBuffer(other) && one.equals(other);
  const keys = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame((one as Fields)[key], (other as Fields)[key]))
  );
}

type Fields = Readonly<Record<string, unknown>>;

const fuzzer: Fuzzer = {
  name: 'decoders',
  batch: 5_000,
  heapGrowthMax: 128 * 1024 * 1024,
  workMax: { steps: DECODE_LIMITS.stepsMax, items: DECODE_LIMITS.itemsMax },
  async open() {
    const registry = memorySchemaRegistry();
    const codecs = createCodecs({ registry, clock: handClock() });
    await codecs.register(TOPIC_OF_EACH);
    const sources = await sourcesOf(codecs, registry);
    return (draw, count, account) => {
      for (let i = 0; i < count; i++) {
        const source = pick(draw, sources);
        let body = pick(draw, source.bodies);
        for (let left = draw.below(4); left > 0; left--) body = mutate(draw, body, pick(draw, source.bodies));
        const whole = framed(source.schemaId, body);
        const bytes = draw.below(8) === 0 ? breakFrame(draw, whole) : whole;
        account.input(bytes, () => readOne(codecs, source, bytes, account));
      }
    };
  },
};

await runFuzzer(fuzzer);
