import avro from 'avsc';
import { FORBIDDEN_KEYS } from '../core/own.ts';
import { LONG_MAX, LONG_MIN } from './avro-type.ts';
import type { DecodeLimits } from './limits.ts';
import { readText } from './short-text.ts';

/**
 * One value of the schema from all bytes after `start`; undefined where they are not plainly one within the limits: then the walker says what is
 * wrong with them, or the decoder reads what this one leaves out.
 */
export type CompiledReader = (bytes: Buffer, start: number) => unknown;

type Limits = Pick<DecodeLimits, 'itemsMax' | 'depthMax' | 'stepsMax'>;

/** Thrown to give up; never seen outside. */
const UNREAD = new Error('not plainly a value of the schema');
const NO_BYTES = Buffer.alloc(0);

/**
 * Compiles a schema into one JavaScript function that checks and reads in a single pass: a third of what walking the bytes and reading them
 * through a tree of types takes. It keeps to the walker's limits: each length against the bytes that are left, the sum of all items; depth and
 * steps follow from the schema, which is not compiled where they could be too many.
 * @returns undefined for a schema with types that ours do not have
 */
export function compileReader(type: avro.Type, limits: Limits): CompiledReader | undefined {
  const source = new ReaderSource();
  const value = source.value(type, 1);
  if (value === undefined || source.depth > limits.depthMax) return undefined;
  if (source.stepsMost(limits.itemsMax) > limits.stepsMax) return undefined;
  const read = source.compile(value);
  const cursor = new ReaderCursor(limits.itemsMax);
  return (bytes, start) => {
    cursor.startAt(bytes, start);
    try {
      const found = read(cursor);
      return cursor.pos === bytes.length ? found : undefined;
    } catch (error) {
      if (error === UNREAD) return undefined;
      throw error;
    } finally {
      cursor.startAt(NO_BYTES, 0);
    }
  };
}

class ReaderCursor {
  buf: Buffer = NO_BYTES;
  pos = 0;
  readonly #itemsMax: number;
  #items = 0;

  constructor(itemsMax: number) {
    this.#itemsMax = itemsMax;
  }

  startAt(bytes: Buffer, start: number): void {
    this.buf = bytes;
    this.pos = start;
    this.#items = 0;
  }

  long(): number {
    const first = this.buf[this.pos++];
    if (first === undefined) throw UNREAD;
    return first < 0x80 ? (first >>> 1) ^ -(first & 1) : this.#longer(first & 0x7f);
  }

  int(): number {
    const value = this.long();
    if (value !== (value | 0)) throw UNREAD;
    return value;
  }

  boolean(): boolean {
    const byte = this.buf[this.pos++];
    if (byte !== 0 && byte !== 1) throw UNREAD;
    return byte === 1;
  }

  double(): number {
    const start = this.#past(8);
    return this.buf.readDoubleLE(start);
  }

  float(): number {
    const start = this.#past(4);
    return this.buf.readFloatLE(start);
  }

  bytes(): Buffer {
    const length = this.long();
    const start = this.#past(length);
    return this.buf.subarray(start, start + length);
  }

  text(): string {
    const length = this.long();
    if (!(length >= 0 && length <= this.buf.length - this.pos)) throw UNREAD;
    return readText(this, length);
  }

  key(): string {
    const key = this.text();
    if (FORBIDDEN_KEYS.has(key)) throw UNREAD;
    return key;
  }

  /** The branch of a union, the place of an enum's symbol. */
  index(count: number): number {
    const index = this.long();
    if (!(index >= 0 && index < count)) throw UNREAD;
    return index;
  }

  /** How many items the only block of an array or map has; 0 for none. */
  items(minBytes: number): number {
    const count = this.long();
    if (!(count >= 0 && count * minBytes <= this.buf.length - this.pos)) throw UNREAD;
    this.#items += count;
    if (this.#items > this.#itemsMax) throw UNREAD;
    return count;
  }

  /** Past the end of the array or map. */
  noMore(): void {
    if (this.buf[this.pos++] !== 0) throw UNREAD;
  }

  #past(length: number): number {
    const start = this.pos;
    if (!(length >= 0 && length <= this.buf.length - start)) throw UNREAD;
    this.pos = start + length;
    return start;
  }

  /** Exact within ±2^52; what is beyond is refused. */
  #longer(low: number): number {
    let value = low;
    for (let scale = 128; scale <= 2 ** 56; scale *= 128) {
      const byte = this.buf[this.pos++];
      if (byte === undefined) throw UNREAD;
      value += (byte & 0x7f) * scale;
      if (byte >= 0x80) continue;
      const long = low % 2 === 1 ? -(value + 1) / 2 : value / 2;
      if (!(long >= LONG_MIN && long <= LONG_MAX)) throw UNREAD;
      return long;
    }
    throw UNREAD;
  }
}

const SCALARS: Readonly<Record<string, { expression: string; minBytes: number }>> = {
  boolean: { expression: 'c.boolean()', minBytes: 1 },
  int: { expression: 'c.int()', minBytes: 1 },
  long: { expression: 'c.long()', minBytes: 1 },
  float: { expression: 'c.float()', minBytes: 4 },
  double: { expression: 'c.double()', minBytes: 8 },
  string: { expression: 'c.text()', minBytes: 1 },
  bytes: { expression: 'c.bytes()', minBytes: 1 },
};

/** An expression that reads one value from the cursor `c`, and the least bytes that it takes. */
interface Value {
  expression: string;
  minBytes: number;
}

/** Writes the functions of a reader: one per array and map, and the rest within the one that reads the record. */
class ReaderSource {
  depth = 0;
  readonly #functions: string[] = [];
  readonly #symbols: (readonly string[])[] = [];
  readonly #records: avro.Type[] = [];
  #values = 0;
  /** Of an array or a map: most values within one item. */
  #itemValues = 0;

  /** Of a record in which there are at most so many items. */
  stepsMost(itemsMax: number): number {
    return this.#values + itemsMax * this.#itemValues;
  }

  compile(value: Value): (cursor: ReaderCursor) => unknown {
    const body = `'use strict'; ${this.#functions.join('\n')}\nreturn (c) => (${value.expression});`;
    return new Function('symbols', body)(this.#symbols) as (cursor: ReaderCursor) => unknown;
  }

  value(type: avro.Type, depth: number): Value | undefined {
    this.#values += 1;
    this.depth = Math.max(this.depth, depth);
    if (type instanceof avro.types.RecordType) return this.#record(type, depth);
    if (type instanceof avro.types.ArrayType) return this.#array(type, depth);
    if (type instanceof avro.types.MapType) return this.#map(type, depth);
    if (type instanceof avro.types.UnwrappedUnionType) return this.#optional(type, depth);
    if (type instanceof avro.types.EnumType) {
      const place = this.#symbols.push(type.symbols) - 1;
      return { expression: `symbols[${place}][c.index(${type.symbols.length})]`, minBytes: 1 };
    }
    return SCALARS[type.typeName];
  }

  #record(type: avro.types.RecordType, depth: number): Value | undefined {
    // a record within itself has no bounded depth, and one without fields takes no bytes
    if (this.#records.includes(type) || type.fields.length === 0) return undefined;
    this.#records.push(type);
    const fields: string[] = [];
    let minBytes = 0;
    for (const field of type.fields) {
      const value = field.name === '__proto__' ? undefined : this.value(field.type, depth + 1);
      if (value === undefined) return undefined;
      fields.push(`${field.name}: ${value.expression}`);
      minBytes += value.minBytes;
    }
    this.#records.pop();
    return { expression: `{ ${fields.join(', ')} }`, minBytes };
  }

  #array(type: avro.types.ArrayType, depth: number): Value | undefined {
    const item = this.#item(type.itemsType, depth);
    if (item === undefined) return undefined;
    const call = this.#function(`
      const count = c.items(${item.minBytes});
      if (count === 0) return [];
      const items = [];
      for (let i = 0; i < count; i += 1) items.push(${item.expression});
      c.noMore();
      return items;`);
    return { expression: call, minBytes: 1 };
  }

  #map(type: avro.types.MapType, depth: number): Value | undefined {
    const item = this.#item(type.valuesType, depth);
    if (item === undefined) return undefined;
    const call = this.#function(`
      const map = {};
      const count = c.items(${1 + item.minBytes});
      if (count === 0) return map;
      for (let i = 0; i < count; i += 1) { const key = c.key(); map[key] = ${item.expression}; }
      c.noMore();
      return map;`);
    return { expression: call, minBytes: 1 };
  }

  #item(type: avro.Type, depth: number): Value | undefined {
    const before = this.#values;
    const item = this.value(type, depth + 1);
    // a map's key is one more
    this.#itemValues = Math.max(this.#itemValues, 1 + this.#values - before);
    return item;
  }

  /** A type or null, in either order: our only unions. */
  #optional(type: avro.types.UnwrappedUnionType, depth: number): Value | undefined {
    const [first, second] = type.types;
    if (first === undefined || second === undefined || type.types.length !== 2) return undefined;
    const isNullFirst = first.typeName === 'null';
    if (isNullFirst === (second.typeName === 'null')) return undefined;
    const value = this.value(isNullFirst ? second : first, depth);
    if (value === undefined) return undefined;
    return {
      expression: `(c.index(2) === ${isNullFirst ? 0 : 1} ? null : ${value.expression})`,
      minBytes: 1,
    };
  }

  #function(body: string): string {
    const name = `part${this.#functions.length}`;
    this.#functions.push(`function ${name}(c) {${body}\n}`);
    return `${name}(c)`;
  }
}
