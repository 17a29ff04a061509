import { describe, expect, it } from 'vitest';
import { LONG_MAX, LONG_MIN, parseType } from '../../../src/contracts/avro-type.ts';
import { compileWalker, type Walked } from '../../../src/contracts/bounded.ts';
import { DECODE_LIMITS, type DecodeLimits } from '../../../src/contracts/limits.ts';

function walk(schema: unknown, bytes: Uint8Array, limits: Partial<DecodeLimits> = {}): Walked {
  return compileWalker(parseType(JSON.stringify(schema)), { ...DECODE_LIMITS, ...limits })(bytes, 0);
}

/** A zig-zag varint. */
function long(value: bigint | number): Buffer {
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
  const bytes: number[] = [];
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}
const bytesOf = (...parts: readonly (Uint8Array | number)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? long(part) : part)));
const text = (value: string): Buffer => bytesOf(Buffer.byteLength(value), Buffer.from(value));
const record = (...types: readonly unknown[]): object => ({
  type: 'record',
  name: 'R',
  fields: types.map((type, index) => ({ name: `f${index}`, type })),
});
const array = (items: unknown): object => ({ type: 'array', items });
const map = (values: unknown): object => ({ type: 'map', values });

describe('accepts', () => {
  it.each<[string, unknown, Buffer]>([
    ['null', 'null', Buffer.alloc(0)],
    ['boolean', 'boolean', Buffer.of(1)],
    ['the least and the greatest int', record('int', 'int'), bytesOf(-(2 ** 31), 2 ** 31 - 1)],
    ['the least and the greatest exact long', record('long', 'long'), bytesOf(LONG_MIN, LONG_MAX)],
    ['float and double', record('float', 'double'), Buffer.alloc(12)],
    ['string and bytes', record('string', 'bytes'), bytesOf(text('héllo'), 3, Buffer.alloc(3))],
    ['fixed', { type: 'fixed', name: 'F', size: 5 }, Buffer.alloc(5)],
    ['enum', { type: 'enum', name: 'E', symbols: ['A', 'B'] }, long(1)],
    ['union', ['null', 'string'], bytesOf(1, text('x'))],
    ['a union that avsc would wrap', ['int', 'long'], bytesOf(1, 9)],
    ['an empty array', array('string'), long(0)],
    ['an array in two blocks', array('int'), bytesOf(2, 7, 8, 1, 9, 0)],
    ['a block that says its size', array('int'), bytesOf(-2, 2, 7, 8, 0)],
    ['10 000 nulls', array('null'), bytesOf(10_000, 0)],
    ['map', map('int'), bytesOf(1, text('a'), 5, 0)],
    [
      'map keys near the forbidden ones',
      map('int'),
      bytesOf(2, text('__proto_x'), 5, text('prototypes'), 6, 0),
    ],
  ])('%s', (_, schema, bytes) => {
    expect(walk(schema, bytes)).toMatchObject({ refusal: undefined, end: bytes.length });
  });
});

describe('refuses as malformed', () => {
  it.each<[string, unknown, Buffer]>([
    ['nothing where a record should be', record('string'), Buffer.alloc(0)],
    ['a byte after the end', record('int'), bytesOf(1, 0)],
    ['a boolean of 2', 'boolean', Buffer.of(2)],
    ['no boolean', 'boolean', Buffer.alloc(0)],
    ['an int of 33 bits', 'int', long(2 ** 31)],
    ['an int below 32 bits', 'int', long(-(2 ** 31) - 1)],
    ['a long beyond what a number holds', 'long', long(2n ** 60n)],
    ['a long that would be read with another sign', 'long', long(-(2n ** 52n) - 1n)],
    ['a long of eleven bytes', 'long', Buffer.alloc(11, 0x80)],
    ['a long cut short', 'long', Buffer.of(0x80)],
    ['a float cut short', 'float', Buffer.alloc(3)],
    ['a string longer than what is left', 'string', bytesOf(6, Buffer.alloc(5))],
    ['a string of negative length', 'string', long(-1)],
    [
      'a string of negative length, whose length would be read again as an int',
      record('string', 'int'),
      long(-1),
    ],
    ['bytes longer than any memory', 'bytes', long(2n ** 50n)],
    ['a union branch that is none', ['null', 'int'], bytesOf(2)],
    ['a negative union branch', ['null', 'int'], bytesOf(-1)],
    ['an enum symbol that is none', { type: 'enum', name: 'E', symbols: ['A', 'B'] }, long(2)],
    ['an array without its end', array('int'), bytesOf(1, 5)],
    ['more items than bytes', array('int'), bytesOf(3, 1, 0)],
    ['more doubles than bytes', array('double'), bytesOf(2, Buffer.alloc(15), 0)],
    ['a block whose size is not true', array('int'), bytesOf(-2, 3, 7, 8, 0)],
    ['a block of negative size', array('int'), bytesOf(-2, -2, 7, 8, 0)],
    ['a map key longer than what is left', map('int'), bytesOf(1, 90, 1, 0)],
    ['the map key __proto__', map('int'), bytesOf(1, text('__proto__'), 5, 0)],
    ['the map key constructor', map('int'), bytesOf(1, text('constructor'), 5, 0)],
    ['the map key prototype', map('int'), bytesOf(1, text('prototype'), 5, 0)],
  ])('%s', (_, schema, bytes) => {
    expect(walk(schema, bytes).refusal?.code).toBe('MALFORMED');
  });

  it('and says where', () => {
    const schema = record('int', record('string'));
    const inner = JSON.parse(
      JSON.stringify(schema).replace(
        '"R","fields":[{"name":"f0","type":"string"',
        '"Q","fields":[{"name":"f0","type":"string"',
      ),
    );
    expect(walk(inner, bytesOf(1, 9)).refusal?.message).toBe(
      'f1.f0: 9 bytes announced before the last 0, at byte 2',
    );
  });
});

describe('bombs cost a few steps', () => {
  it.each<[string, unknown, Buffer, string]>([
    ['5·10⁷ nulls in five bytes', array('null'), bytesOf(50_000_000, 0), 'TOO_LARGE'],
    [
      'nulls in many blocks',
      array('null'),
      bytesOf(...Array.from({ length: 11 }, () => 1_000), 0),
      'TOO_LARGE',
    ],
    ['nulls in a block that says its size', array('null'), bytesOf(-50_000_000, 0, 0), 'TOO_LARGE'],
    ['10⁸ ints, cut short', array('int'), bytesOf(100_000_000, 1, 2, 3), 'MALFORMED'],
    ['2⁶² ints', array('int'), bytesOf(long(2n ** 62n), 1), 'MALFORMED'],
    ['empty records', array(record()), bytesOf(1_000_000, 0), 'TOO_LARGE'],
    ['empty fixed', array({ type: 'fixed', name: 'F', size: 0 }), bytesOf(1_000_000, 0), 'TOO_LARGE'],
    ['10⁸ map entries', map('null'), bytesOf(100_000_000, text('a')), 'MALFORMED'],
  ])('%s', (_, schema, bytes, code) => {
    const limits = { zeroByteItemsMax: 10_000 };
    const { refusal, steps, items, end } = walk(schema, bytes, limits);
    expect(refusal?.code).toBe(code);
    expect(steps).toBeLessThan(100);
    expect(items).toBeLessThanOrEqual(10_000);
    expect(end).toBeLessThanOrEqual(bytes.length);
  });

  it('arrays of nulls inside an array share one allowance', () => {
    const inner = bytesOf(9_000, 0);
    const bytes = bytesOf(1_000, ...Array.from({ length: 1_000 }, () => inner), 0);
    const { refusal, items } = walk(array(array('null')), bytes);
    expect(refusal?.code).toBe('TOO_LARGE');
    expect(items).toBeLessThanOrEqual(20_000);
  });

  it('many small items are counted over the whole record', () => {
    const bytes = bytesOf(100_000, Buffer.alloc(100_000, 2), 0);
    expect(walk(array('int'), bytes)).toMatchObject({ refusal: { code: 'TOO_LARGE' }, items: 100_000 });
    expect(walk(array('int'), bytes).steps).toBeLessThan(10);
    expect(walk(array('int'), bytes, { itemsMax: 100_000 }).refusal).toBeUndefined();
  });

  it("records that double thirty times, of a hostile writer's schema, stop at the limit of steps", () => {
    let type: unknown = { type: 'record', name: 'R0', fields: [] };
    for (let level = 1; level <= 30; level++) {
      const fields = [
        { name: 'a', type },
        { name: 'b', type: `R${level - 1}` },
      ];
      type = { type: 'record', name: `R${level}`, fields };
    }
    const { refusal, steps } = walk(type, Buffer.alloc(0));
    expect(refusal?.code).toBe('TOO_LARGE');
    expect(steps).toBeLessThanOrEqual(DECODE_LIMITS.stepsMax + 1);
  });

  const LIST = { type: 'record', name: 'Node', fields: [{ name: 'next', type: ['null', 'Node'] }] };
  const TREE = { type: 'record', name: 'Tree', fields: [{ name: 'children', type: array('Tree') }] };
  const ENDLESS = { type: 'record', name: 'Endless', fields: [{ name: 'again', type: 'Endless' }] };

  it('recursion stops at the depth allowed', () => {
    const list = (length: number): Buffer => bytesOf(Buffer.alloc(length, 2), 0);
    expect(walk(LIST, list(63)).refusal).toBeUndefined();
    expect(walk(LIST, list(64)).refusal?.code).toBe('TOO_LARGE');
    expect(walk(LIST, list(1_000_000)).steps).toBeLessThan(200);
    expect(walk(TREE, Buffer.alloc(1_000, 2)).refusal).toMatchObject({ code: 'TOO_LARGE' });
    expect(walk(ENDLESS, Buffer.alloc(0)).refusal).toMatchObject({ code: 'TOO_LARGE' });
  });

  it('a wide tree is walked: depth counts what is open, not what was', () => {
    const leaf = long(0);
    const bytes = bytesOf(5_000, ...Array.from({ length: 5_000 }, () => leaf), 0);
    expect(walk(TREE, bytes)).toMatchObject({ refusal: undefined, items: 5_000 });
  });
});

it('skips strings and bytes without reading them', () => {
  const bytes = bytesOf(1_000_000, Buffer.alloc(1_000_000));
  expect(walk('bytes', bytes)).toEqual({ refusal: undefined, end: bytes.length, items: 0, steps: 1 });
});
