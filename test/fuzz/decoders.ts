/**
 * Seeded fuzzing of the record decoders: valid framed records, mutated, read by the codec as a stage would.
 *
 *     node test/fuzz/decoders.ts --records 1000000 --seed 1
 *
 * Prints counts per outcome, the most work that one record cost, and the heap's peak over batches. Exits 1 on a throw, on a record that was
 * walked and then could not be decoded, on work beyond the bounds, on a heap beyond them, or where less than half got past frame and look-up.
 */

import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import avro from 'avsc';
import fc from 'fast-check';
import { memorySchemaRegistry } from '../../src/adapters/registry/memory.ts';
import { parseType } from '../../src/contracts/avro-type.ts';
import { compileWalker, type Walker } from '../../src/contracts/bounded.ts';
import { type Codecs, createCodecs } from '../../src/contracts/codec.ts';
import { DECODE_LIMITS } from '../../src/contracts/limits.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import type { RecordName } from '../../src/contracts/topics.ts';
import { arbitraryRecord } from '../contract/arbitraries.ts';
import { EXAMPLES } from '../contract/examples.ts';
import { framed, handClock, RECORD_NAMES, TOPIC_OF_EACH } from '../contract/fixture.ts';

const SAMPLES = 64;
const BATCH = 5_000;
/** Live heap and buffers that a batch may add at its peak. */
const HEAP_GROWTH_MAX = 64 * 1024 * 1024;
/** Zero-byte values and fields beside those that take a byte. */
const STEPS_PER_BYTE_MAX = 8;
const STEPS_FREE = 64;

/** Uniform integers below a bound. Source: mulberry32, T. Ettinger. */
type Draw = (below: number) => number;

function drawsOf(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** One writer's schema, and valid bodies of it. */
interface Source {
  record: RecordName;
  schemaId: number;
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
  seed: number,
): Promise<Source[]> {
  const sources: Source[] = [];
  for (const record of RECORD_NAMES) {
    const own = codecs.for(record).encode(EXAMPLES[record] as never);
    const type = parseType(SCHEMAS[record]);
    const values = [EXAMPLES[record], ...fc.sample(arbitraryRecord(record), { numRuns: SAMPLES, seed })];
    const bodies = values.map((value) => type.toBuffer(value));
    sources.push({ record, schemaId: own.readInt32BE(1), walk: compileWalker(type, DECODE_LIMITS), bodies });
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
  await codecs.learn(schemaId);
  const type = avro.Type.forSchema(JSON.parse(text), { wrapUnions: false });
  const bodies = values.map((value) => type.toBuffer(value));
  return { record, schemaId, walk: compileWalker(parseType(text), DECODE_LIMITS), bodies };
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

function mutate(draw: Draw, body: Buffer, other: Buffer): Buffer {
  const at = draw(body.length + 1);
  const put = (inserted: Uint8Array, removed: number): Buffer =>
    Buffer.concat([body.subarray(0, at), inserted, body.subarray(Math.min(body.length, at + removed))]);
  switch (draw(9)) {
    case 0:
      return put(Buffer.of(draw(256)), 1);
    case 1:
      return put(Buffer.of((body[at] ?? 0) ^ (1 << draw(8))), 1);
    case 2:
      return body.subarray(0, at);
    case 3:
      return put(Buffer.of(draw(256), draw(256)), 0);
    case 4:
      return put(Buffer.alloc(0), 1 + draw(8));
    case 5:
      return put(BOMBS[draw(BOMBS.length)] ?? body, draw(3));
    case 6:
      return put(KEYS[draw(KEYS.length)] ?? body, draw(12));
    case 7:
      return put(other.subarray(draw(other.length)), draw(body.length));
    default:
      return put(body.subarray(draw(body.length)), 0);
  }
}

function breakFrame(draw: Draw, bytes: Buffer): Buffer {
  switch (draw(4)) {
    case 0:
      return bytes.subarray(0, draw(6));
    case 1:
      return bytes.subarray(1 + draw(4));
    case 2:
      return Buffer.concat([Buffer.of(1 + draw(255)), bytes.subarray(1)]);
    default: {
      const changed = Buffer.from(bytes);
      changed.writeInt32BE(draw(2) === 0 ? 1 + draw(64) : draw(2 ** 31) - 2 ** 30, 1);
      return changed;
    }
  }
}

interface Report {
  outcomes: Map<string, number>;
  pastLookUp: number;
  stepsMax: number;
  itemsMax: number;
  heapGrowthMax: number;
  failures: string[];
}

function readOne(codecs: Codecs, source: Source, bytes: Buffer, report: Report): void {
  const count = (outcome: string): void =>
    void report.outcomes.set(outcome, (report.outcomes.get(outcome) ?? 0) + 1);
  const fail = (what: string): void =>
    void report.failures.push(`${what}: ${source.record} ${bytes.toString('hex').slice(0, 400)}`);
  const decoded = codecs.for(source.record).decode(bytes);
  count(decoded.status === 'unreadable' ? decoded.code : decoded.status);
  const isPast = bytes.length >= 5 && bytes[0] === 0 && bytes.readInt32BE(1) === source.schemaId;
  if (!isPast) return;
  report.pastLookUp += 1;
  const { refusal, steps, items } = source.walk(bytes, 5);
  report.stepsMax = Math.max(report.stepsMax, steps);
  report.itemsMax = Math.max(report.itemsMax, items);
  if (steps > STEPS_PER_BYTE_MAX * bytes.length + STEPS_FREE)
    fail(`${steps} steps for ${bytes.length} bytes`);
  if (items > bytes.length + DECODE_LIMITS.zeroByteItemsMax)
    fail(`${items} items from ${bytes.length} bytes`);
  if (refusal === undefined && decoded.status !== 'ok') fail('walked, yet not decoded');
}

function liveBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { records: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
  });
  const records = Number(values.records);
  const seed = Number(values.seed);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const registry = memorySchemaRegistry();
  const codecs = createCodecs({ registry, clock: handClock() });
  await codecs.register(TOPIC_OF_EACH);
  const sources = await sourcesOf(codecs, registry, seed);
  const draw = drawsOf(seed);
  const report: Report = {
    outcomes: new Map(),
    pastLookUp: 0,
    stepsMax: 0,
    itemsMax: 0,
    heapGrowthMax: 0,
    failures: [],
  };
  const startedMs = performance.now();
  for (let done = 0; done < records && report.failures.length < 10; done += BATCH) {
    collect();
    const before = liveBytes();
    for (let i = 0; i < Math.min(BATCH, records - done); i++) {
      const source = sources[draw(sources.length)];
      if (source === undefined) continue;
      let body = source.bodies[draw(source.bodies.length)] ?? Buffer.alloc(0);
      for (let left = draw(4); left > 0; left--)
        body = mutate(draw, body, source.bodies[draw(source.bodies.length)] ?? body);
      const bytes = framed(source.schemaId, body);
      try {
        readOne(codecs, source, draw(8) === 0 ? breakFrame(draw, bytes) : bytes, report);
      } catch (error) {
        report.failures.push(
          `threw ${String(error)}: ${source.record} ${bytes.toString('hex').slice(0, 400)}`,
        );
      }
    }
    report.heapGrowthMax = Math.max(report.heapGrowthMax, liveBytes() - before);
  }
  finish(report, records, seed, performance.now() - startedMs);
}

function finish(report: Report, records: number, seed: number, tookMs: number): void {
  if (report.heapGrowthMax > HEAP_GROWTH_MAX)
    report.failures.push(`a batch grew the heap by ${report.heapGrowthMax} bytes`);
  if (report.pastLookUp * 2 < records)
    report.failures.push(`only ${report.pastLookUp} of ${records} got past frame and look-up`);
  if (Object.keys(Object.prototype).length > 0) report.failures.push('Object.prototype was changed');
  console.log(
    `records ${records}, seed ${seed}, ${(tookMs / 1000).toFixed(1)} s, past frame and look-up ${report.pastLookUp}`,
  );
  for (const [outcome, count] of [...report.outcomes].sort((a, b) => b[1] - a[1]))
    console.log(`  ${outcome.padEnd(16)}${count}`);
  console.log(`most work of one record: ${report.stepsMax} steps, ${report.itemsMax} items`);
  console.log(`heap peak over batches of ${BATCH}: +${(report.heapGrowthMax / 1024 / 1024).toFixed(1)} MiB`);
  for (const failure of report.failures) console.error(`FAILED ${failure}`);
  process.exitCode = report.failures.length === 0 ? 0 : 1;
}

await main();
