import type avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseType } from '../../../src/contracts/avro-type.ts';
import { compileWalker } from '../../../src/contracts/bounded.ts';
import { compileReader } from '../../../src/contracts/compiled-reader.ts';
import { compileWriter } from '../../../src/contracts/compiled-writer.ts';
import { DECODE_LIMITS } from '../../../src/contracts/limits.ts';
import { SCHEMAS } from '../../../src/contracts/schemas.ts';
import type { RecordName } from '../../../src/contracts/topics.ts';
import { arbitraryValue } from '../../contract/arbitraries.ts';

const RECORDS = Object.keys(SCHEMAS) as RecordName[];
const START = 5;

function compiled(record: RecordName) {
  const type = parseType(SCHEMAS[record]);
  const read = compileReader(type, DECODE_LIMITS);
  const write = compileWriter(type);
  if (read === undefined || write === undefined) throw new Error(`${record} is not compiled`);
  return { type, read, write, arbitrary: arbitraryValue(type) };
}

function encoded(type: avro.Type, value: unknown): Buffer {
  return Buffer.concat([Buffer.alloc(START), type.toBuffer(value)]);
}

/** Puts `wrong` in the place of one value within `value`, found by the numbers in `path`. */
function spoiled(value: unknown, path: readonly number[], wrong: unknown): unknown {
  const [step, ...rest] = path;
  const isLeaf = typeof value !== 'object' || value === null || Buffer.isBuffer(value);
  const keys = isLeaf ? [] : Object.keys(value);
  const key = keys[(step ?? 0) % Math.max(1, keys.length)];
  if (isLeaf || step === undefined || key === undefined) return wrong;
  const inner = spoiled((value as Record<string, unknown>)[key], rest, wrong);
  return Array.isArray(value)
    ? value.map((item, index) => (String(index) === key ? inner : (item as unknown)))
    : { ...value, [key]: inner };
}

describe.each(RECORDS)('the compiled codec of %s', (record) => {
  const { type, read, write, arbitrary } = compiled(record);

  it('reads what avsc reads, and writes the bytes that avsc writes', () => {
    fc.assert(
      fc.property(arbitrary, (value) => {
        const bytes = encoded(type, value);
        expect(read(bytes, START)).toEqual(type.decode(bytes, START).value);
        const buffer = Buffer.alloc(bytes.length);
        expect(write(value, buffer, START)).toBe(bytes.length);
        expect(buffer.equals(bytes)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('answers how much room a value needs where there is too little, and writes nothing beyond it', () => {
    fc.assert(
      fc.property(arbitrary, fc.nat(), (value, cut) => {
        const bytes = encoded(type, value);
        const whole = Buffer.alloc(bytes.length, 0xaa);
        const room = START + (cut % Math.max(1, bytes.length - START));
        expect(write(value, whole.subarray(0, room), START)).toBe(bytes.length);
        expect(whole.subarray(room).every((byte) => byte === 0xaa)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('reads damaged bytes as avsc does where the walker passes them, and otherwise not at all', () => {
    const walk = compileWalker(type, DECODE_LIMITS);
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(arbitrary, damage, fc.nat(20), (value, changes, cut) => {
        const whole = encoded(type, value);
        const bytes = Buffer.from(
          whole.subarray(0, Math.max(START, whole.length - (cut > 10 ? cut - 10 : 0))),
        );
        for (const [at, byte] of changes) {
          if (bytes.length > START) bytes[START + (at % (bytes.length - START))] = byte;
        }
        const found = read(bytes, START);
        if (found === undefined) return;
        expect(walk(bytes, START).refusal).toBeUndefined();
        expect(found).toEqual(type.decode(bytes, START).value);
      }),
      { numRuns: 300 },
    );
  });

  it('leaves a value that is not one of the schema to avsc, which says what is wrong', () => {
    const wrong = fc.constantFrom(undefined, 'x', 1.5, -1, 2 ** 60, Number.NaN, true, {}, [], new Map());
    fc.assert(
      fc.property(arbitrary, fc.array(fc.nat(50), { maxLength: 6 }), wrong, (value, path, bad) => {
        const candidate = spoiled(value, path, bad);
        const end = write(candidate, Buffer.alloc(100_000), START);
        if (end === undefined) return;
        expect(type.isValid(candidate)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});

describe('what is not compiled', () => {
  it.each([
    ['a record within itself', '{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}'],
    [
      'a union of three',
      '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int","string"]}]}',
    ],
    [
      'a fixed',
      '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":4}}]}',
    ],
  ])('%s', (_, schema) => {
    expect(compileReader(parseType(schema), DECODE_LIMITS)).toBeUndefined();
    expect(compileWriter(parseType(schema))).toBeUndefined();
  });

  it('a schema that is deeper than the limit', () => {
    const type = parseType(SCHEMAS.ScoreRequest);
    expect(compileReader(type, { ...DECODE_LIMITS, depthMax: 1 })).toBeUndefined();
    expect(compileReader(type, { ...DECODE_LIMITS, stepsMax: 10 })).toBeUndefined();
  });
});
