import avro from 'avsc';
import { LONG_MAX, LONG_MIN } from './avro-type.ts';
import { writeShortText } from './short-text.ts';

/**
 * Writes one value from `start` on and answers the end, which lies beyond the buffer where it was too small: then it says how much is needed.
 * undefined where the value is not plainly one of the schema: a default is missing, or it is wrong.
 */
export type CompiledWriter = (value: unknown, buffer: Buffer, start: number) => number | undefined;

/** Thrown to give up; never seen outside. */
const UNWRITTEN = new Error('not plainly a value of the schema');
const NO_BYTES = Buffer.alloc(0);

/**
 * Compiles a schema into one JavaScript function that checks and writes in a single pass.
 * @returns undefined for a schema with types that ours do not have
 */
export function compileWriter(type: avro.Type): CompiledWriter | undefined {
  const source = new WriterSource();
  const statements = source.statements(type, 'value');
  if (statements === undefined) return undefined;
  const write = source.compile(statements);
  const cursor = new WriterCursor();
  return (value, buffer, start) => {
    cursor.startAt(buffer, start);
    try {
      write(cursor, value);
      return cursor.pos;
    } catch (error) {
      if (error === UNWRITTEN) return undefined;
      throw error;
    } finally {
      cursor.startAt(NO_BYTES, 0);
    }
  };
}

/** Where to write. Beyond the buffer's end only the position moves. */
class WriterCursor {
  buf: Buffer = NO_BYTES;
  pos = 0;

  startAt(buffer: Buffer, start: number): void {
    this.buf = buffer;
    this.pos = start;
  }

  long(value: unknown): void {
    if (typeof value !== 'number' || !Number.isInteger(value)) throw UNWRITTEN;
    if (value >= -0x40000000 && value < 0x40000000) this.#short((value << 1) ^ (value >> 31));
    else this.#longer(value);
  }

  int(value: unknown): void {
    if (typeof value !== 'number' || value !== (value | 0)) throw UNWRITTEN;
    this.long(value);
  }

  boolean(value: unknown): void {
    if (typeof value !== 'boolean') throw UNWRITTEN;
    this.buf[this.pos++] = value ? 1 : 0;
  }

  double(value: unknown): void {
    if (typeof value !== 'number') throw UNWRITTEN;
    if (this.pos + 8 <= this.buf.length) this.buf.writeDoubleLE(value, this.pos);
    this.pos += 8;
  }

  float(value: unknown): void {
    if (typeof value !== 'number') throw UNWRITTEN;
    if (this.pos + 4 <= this.buf.length) this.buf.writeFloatLE(value, this.pos);
    this.pos += 4;
  }

  bytes(value: unknown): void {
    if (!Buffer.isBuffer(value)) throw UNWRITTEN;
    this.#short(value.length << 1);
    if (this.pos + value.length <= this.buf.length) this.buf.set(value, this.pos);
    this.pos += value.length;
  }

  text(value: unknown): void {
    if (typeof value !== 'string') throw UNWRITTEN;
    if (writeShortText(this, value)) return;
    const length = Buffer.byteLength(value);
    this.#short(length << 1);
    if (this.pos + length <= this.buf.length) this.buf.write(value, this.pos);
    this.pos += length;
  }

  /** A number below 64: the branch of a union, an end of items. */
  tag(value: number): void {
    this.buf[this.pos++] = value << 1;
  }

  /** The place of an enum's symbol. */
  symbol(place: number | undefined): void {
    if (place === undefined) throw UNWRITTEN;
    this.#short(place << 1);
  }

  array(value: unknown): readonly unknown[] {
    if (!Array.isArray(value)) throw UNWRITTEN;
    if (value.length > 0) this.#short(value.length << 1);
    return value;
  }

  keys(value: unknown): readonly string[] {
    const keys = Object.keys(this.record(value));
    if (keys.length > 0) this.#short(keys.length << 1);
    return keys;
  }

  record(value: unknown): object {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw UNWRITTEN;
    return value;
  }

  /** A varint of an unsigned 31-bit number. */
  #short(unsigned: number): void {
    const { buf } = this;
    let rest = unsigned >>> 0;
    let { pos } = this;
    while (rest >= 0x80) {
      buf[pos++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buf[pos++] = rest;
    this.pos = pos;
  }

  #longer(value: number): void {
    if (!(value >= LONG_MIN && value <= LONG_MAX)) throw UNWRITTEN;
    let rest = value < 0 ? -value * 2 - 1 : value * 2;
    while (rest >= 0x80) {
      this.buf[this.pos++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.buf[this.pos++] = rest;
  }
}

const SCALARS: ReadonlySet<string> = new Set(['boolean', 'int', 'long', 'float', 'double', 'bytes']);

/** Writes the body of a writer: statements on the cursor `c`, loops nested as the schema nests. */
class WriterSource {
  readonly #places: ReadonlyMap<string, number>[] = [];
  readonly #records: avro.Type[] = [];
  #names = 0;

  compile(statements: string): (cursor: WriterCursor, value: unknown) => void {
    const body = `'use strict'; return (c, value) => { ${statements} };`;
    return new Function('places', body)(this.#places) as (cursor: WriterCursor, value: unknown) => void;
  }

  /** Statements that write the value of the expression `of`, which is cheap to repeat. */
  statements(type: avro.Type, of: string): string | undefined {
    if (type instanceof avro.types.RecordType) return this.#record(type, of);
    if (type instanceof avro.types.ArrayType) return this.#array(type, of);
    if (type instanceof avro.types.MapType) return this.#map(type, of);
    if (type instanceof avro.types.UnwrappedUnionType) return this.#optional(type, of);
    if (type instanceof avro.types.EnumType) {
      const place = this.#places.push(new Map(type.symbols.map((symbol, index) => [symbol, index]))) - 1;
      return `c.symbol(places[${place}].get(${of}));`;
    }
    if (type.typeName === 'string') return `c.text(${of});`;
    return SCALARS.has(type.typeName) ? `c.${type.typeName}(${of});` : undefined;
  }

  #record(type: avro.types.RecordType, of: string): string | undefined {
    if (this.#records.includes(type)) return undefined;
    this.#records.push(type);
    const record = this.#name('record');
    const parts = [`const ${record} = c.record(${of});`];
    for (const field of type.fields) {
      const name = this.#name(field.name);
      const written = field.name === '__proto__' ? undefined : this.statements(field.type, name);
      if (written === undefined) return undefined;
      parts.push(`const ${name} = ${record}.${field.name}; ${written}`);
    }
    this.#records.pop();
    return `{ ${parts.join('\n')} }`;
  }

  #array(type: avro.types.ArrayType, of: string): string | undefined {
    const item = this.#name('item');
    const written = this.statements(type.itemsType, item);
    return written === undefined
      ? undefined
      : `for (const ${item} of c.array(${of})) { ${written} }\nc.tag(0);`;
  }

  #map(type: avro.types.MapType, of: string): string | undefined {
    const key = this.#name('key');
    const item = this.#name('item');
    const written = this.statements(type.valuesType, item);
    if (written === undefined) return undefined;
    return `for (const ${key} of c.keys(${of})) { c.text(${key}); const ${item} = ${of}[${key}]; ${written} }\nc.tag(0);`;
  }

  /** A type or null, in either order: our only unions. */
  #optional(type: avro.types.UnwrappedUnionType, of: string): string | undefined {
    const [first, second] = type.types;
    if (first === undefined || second === undefined || type.types.length !== 2) return undefined;
    const isNullFirst = first.typeName === 'null';
    if (isNullFirst === (second.typeName === 'null')) return undefined;
    const written = this.statements(isNullFirst ? second : first, of);
    if (written === undefined) return undefined;
    const [nullTag, valueTag] = isNullFirst ? [0, 1] : [1, 0];
    return `if (${of} === null) c.tag(${nullTag}); else { c.tag(${valueTag}); ${written} }`;
  }

  #name(stem: string): string {
    this.#names += 1;
    return `${stem}${this.#names}`;
  }
}
