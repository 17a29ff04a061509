import { describe, expect, it } from 'vitest';
import { LONG_MAX, LONG_MIN, parseType } from '../../../src/contracts/avro-type.ts';
import { compileWalker } from '../../../src/contracts/bounded.ts';
import { compileReader } from '../../../src/contracts/compiled-reader.ts';
import { compileWriter } from '../../../src/contracts/compiled-writer.ts';
import { DECODE_LIMITS } from '../../../src/contracts/limits.ts';

/** A record of these fields, so small that all there is to it can be tried. */
function compiled(...fieldTypes: unknown[]) {
  const fields = fieldTypes.map((type, index) => ({ name: `f${index}`, type }));
  const type = parseType(JSON.stringify({ type: 'record', name: 'R', fields }));
  const read = compileReader(type, DECODE_LIMITS);
  const write = compileWriter(type);
  if (read === undefined || write === undefined) throw new Error('the schema is not compiled');
  return { type, read, write, walk: compileWalker(type, DECODE_LIMITS) };
}

const SCHEMAS: [name: string, ...fields: unknown[]][] = [
  ['a boolean', 'boolean'],
  ['an int', 'int'],
  ['a long and an int', 'long', 'int'],
  ['bytes', 'bytes'],
  ['bytes and an int', 'bytes', 'int'],
  ['a text', 'string'],
  ['a text or null', ['string', 'null']],
  ['null or a boolean', ['null', 'boolean']],
  ['a symbol', { type: 'enum', name: 'E', symbols: ['A', 'B', 'C'], default: 'A' }],
  ['a list', { type: 'array', items: 'boolean' }],
  ['a list of lists', { type: 'array', items: { type: 'array', items: 'boolean' } }],
  ['a map', { type: 'map', values: 'boolean' }],
  ['a record within', { type: 'record', name: 'S', fields: [{ name: 'a', type: ['null', 'boolean'] }] }],
];

/** Small numbers, ends of what takes one byte, and bytes that go on. */
const BYTES = [0, 1, 2, 3, 4, 6, 0x61, 0x7f, 0x80, 0x81, 0xff];

function* everyBody(lengthMax: number): Generator<number[]> {
  let bodies: number[][] = [[]];
  for (let length = 0; length <= lengthMax; length += 1) {
    yield* bodies;
    bodies = bodies.flatMap((body) => BYTES.map((byte) => [...body, byte]));
  }
}

describe('the compiled reader, of every few bytes', () => {
  it.each(SCHEMAS)(
    'of %s, gives what avsc gives where the walker passes them, else nothing',
    (_, ...fields) => {
      const { type, read, walk } = compiled(...fields);
      for (const body of everyBody(4)) {
        const bytes = Buffer.from(body);
        const { refusal } = walk(bytes, 0);
        const found = read(bytes, 0);
        const value: unknown = refusal === undefined ? { ...type.decode(bytes, 0).value } : undefined;
        // Blocks with their sizes, or several of them, are left to avsc: who writes in one way only writes neither.
        const isPlain = value !== undefined && type.toBuffer(value).equals(bytes);
        if (found !== undefined || isPlain) expect(found, `of ${body}`).toEqual(value);
      }
    },
  );

  it.each([
    ['the largest long', LONG_MAX, true],
    ['the least', LONG_MIN, true],
    ['one above', LONG_MAX + 1, false],
    ['one below', LONG_MIN - 1, false],
    ['the largest int', 2 ** 31 - 1, true],
    ['-1', -1, true],
  ])('%s', (_, value, isRead) => {
    const { read } = compiled('long');
    const zigzag = value < 0 ? BigInt(value) * -2n - 1n : BigInt(value) * 2n;
    expect(read(varint(zigzag), 0)).toEqual(isRead ? { f0: value } : undefined);
  });

  it.each([
    [2n ** 31n - 1n, true],
    [2n ** 31n, false],
    [-(2n ** 31n), true],
    [-(2n ** 31n) - 1n, false],
  ])('%d is an int: %s', (value, isRead) => {
    const { read } = compiled('int');
    expect(read(varint(value < 0n ? value * -2n - 1n : value * 2n), 0)).toEqual(
      isRead ? { f0: Number(value) } : undefined,
    );
  });

  it('a long of more bytes than it takes, up to nine', () => {
    const { read } = compiled('long');
    const padded = (bytes: number): Buffer => Buffer.from([...Array(bytes - 1).fill(0x80), 0]);
    expect([padded(9), padded(10), padded(11)].map((bytes) => read(bytes, 0))).toEqual([
      { f0: 0 },
      undefined,
      undefined,
    ]);
  });

  it('a double and a float that are cut short', () => {
    for (const [name, size] of [
      ['double', 8],
      ['float', 4],
    ] as const) {
      const { read } = compiled(name);
      expect(read(Buffer.alloc(size), 0)).toEqual({ f0: 0 });
      expect(read(Buffer.alloc(size - 1), 0)).toBeUndefined();
      expect(read(Buffer.alloc(size + 1), 0)).toBeUndefined();
    }
  });

  it.each(['__proto__', 'constructor', 'prototype'])('a map with the key %s', (key) => {
    const { read } = compiled({ type: 'map', values: 'boolean' });
    const of = (name: string): Buffer =>
      Buffer.concat([Buffer.of(2, name.length * 2), Buffer.from(name), Buffer.of(1, 0)]);
    expect([read(of(key), 0), read(of(`${key}x`), 0)]).toEqual([undefined, { f0: { [`${key}x`]: true } }]);
  });

  it('counts items over the whole record, up to the limit, and in each record anew', () => {
    const type = parseType(
      '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"int"}},{"name":"b","type":{"type":"array","items":"int"}}]}',
    );
    const read = compileReader(type, { ...DECODE_LIMITS, itemsMax: 5 });
    const of = (a: number, b: number): Buffer => type.toBuffer({ a: Array(a).fill(0), b: Array(b).fill(0) });
    const isRead = (bytes: Buffer): boolean => read?.(bytes, 0) !== undefined;
    expect([of(2, 3), of(2, 3), of(5, 0), of(2, 4), of(0, 6)].map(isRead)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('is not compiled for a schema of too many values, those of all items counted', () => {
    const type = parseType(
      '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":{"type":"map","values":"int"}}}]}',
    );
    const limits = { ...DECODE_LIMITS, itemsMax: 10 };
    expect(compileReader(type, { ...limits, stepsMax: 1_000 })).toBeDefined();
    expect(compileReader(type, { ...limits, stepsMax: 15 })).toBeUndefined();
  });

  it('is not compiled for an empty record, which a list may have any number of', () => {
    const empty = { type: 'record', name: 'S', fields: [] };
    const schema = {
      type: 'record',
      name: 'R',
      fields: [{ name: 'a', type: { type: 'array', items: empty } }],
    };
    expect(compileReader(parseType(JSON.stringify(schema)), DECODE_LIMITS)).toBeUndefined();
  });
});

function varint(unsigned: bigint): Buffer {
  const bytes: number[] = [];
  let rest = unsigned;
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}

const VALUES: readonly unknown[] = [
  ...[undefined, null, true, false, 0, -0, 1, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY],
  ...[2 ** 30 - 1, 2 ** 30, -(2 ** 30), -(2 ** 30) - 1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1],
  ...[2 ** 52, 2 ** 52 + 1, -(2 ** 52), -(2 ** 52) - 1, 2 ** 53, LONG_MAX, LONG_MIN, 1n],
  ...[
    '',
    'a',
    'é',
    '\u{1F600}',
    'x'.repeat(63),
    'x'.repeat(64),
    `${'x'.repeat(62)}é`,
    'A',
    'C',
    '__proto__',
    'toString',
    'Z',
  ],
  ...[Buffer.alloc(0), Buffer.from('abc'), Buffer.alloc(70), new Uint8Array(2)],
  ...[[], [true], [true, false], [1], [[]], [[true], []], {}, { a: true }, { a: true, b: false }, { a: 1 }],
  ...[{ a: null }, new Map([['a', true]]), Symbol('a'), () => 0],
];

describe('the compiled writer, of every value', () => {
  it.each([...SCHEMAS, ['a double', 'double'], ['a float', 'float']])(
    'of %s, writes the bytes that avsc writes, and leaves to avsc what is none',
    (_, ...fields) => {
      const { type, write } = compiled(...fields);
      for (const f0 of VALUES) {
        const value = { f0, f1: 0 };
        const buffer = Buffer.alloc(200, 0xaa);
        const end = write(value, buffer, 0);
        const isOne = type.isValid(value);
        expect(end !== undefined, `${String(f0)} is written`).toBe(isOne);
        if (end === undefined) continue;
        const bytes = type.toBuffer(value);
        expect(buffer.subarray(0, end), `of ${String(f0)}`).toEqual(bytes);
        const exact = Buffer.alloc(bytes.length);
        expect([write(value, exact, 0), exact]).toEqual([bytes.length, bytes]);
        const short = Buffer.alloc(Math.max(0, bytes.length - 1), 0xaa);
        expect(write(value, short, 0)).toBe(bytes.length);
      }
    },
  );

  it.each([[], null, 'x', undefined, 7])('of no record, %j: nothing', (value) => {
    expect(compiled('int').write(value, Buffer.alloc(10), 0)).toBeUndefined();
  });
});
