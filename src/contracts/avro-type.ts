import avro from 'avsc';
import { type Cursor, readText, writeShortText } from './short-text.ts';

/** The part of avsc's cursor that a type of our own needs. */
interface Tap extends Cursor {
  readLong(): number;
  skipLong(): void;
  writeInt(value: number): void;
  writeLong(value: number): void;
  writeString(text: string): void;
}

type Hook = (value: unknown, type: avro.Type) => void;

/**
 * Avro `bytes` that are read as a view of the record's bytes. avsc's own type zero-fills and copies: of a 32 KB payload that is
 * most of what decoding costs. The view keeps the record's memory alive for as long as it is kept.
 */
class BytesView extends avro.types.BytesType {
  _read(tap: Tap): Buffer {
    const length = tap.readLong();
    const start = tap.pos;
    tap.pos = start + length;
    return tap.buf.subarray(start, tap.pos);
  }
}

/** Avro `string`: nearly all of ours are the same few words, over and over. */
class Text extends avro.types.StringType {
  _read(tap: Tap): string {
    return readText(tap, tap.readLong());
  }

  _write(tap: Tap, value: unknown): void {
    if (typeof value !== 'string') throw new Error(`${String(value)} is no text`);
    if (!writeShortText(tap, value)) tap.writeString(value);
  }
}

/** Avro `map`, its keys read and written like texts. */
class TextMap extends avro.types.MapType {
  declare readonly valuesType: avro.Type & {
    _read(tap: Tap): unknown;
    _write(tap: Tap, value: unknown): void;
  };

  _read(tap: Tap): Record<string, unknown> {
    const values = this.valuesType;
    const map: Record<string, unknown> = {};
    for (let count = tap.readLong(); count !== 0; count = tap.readLong()) {
      if (count < 0) tap.skipLong();
      for (let left = Math.abs(count); left > 0; left -= 1) {
        const key = readText(tap, tap.readLong());
        map[key] = values._read(tap);
      }
    }
    return map;
  }

  _write(tap: Tap, value: unknown): void {
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      throw new Error(`${String(value)} is no map`);
    const map = value as Record<string, unknown>;
    const keys = Object.keys(map);
    if (keys.length > 0) tap.writeLong(keys.length);
    for (const key of keys) {
      if (!writeShortText(tap, key)) tap.writeString(key);
      this.valuesType._write(tap, map[key]);
    }
    tap.writeLong(0);
  }
}

/**
 * avsc computes an Avro long as 2·|n| − 1 in floating point where n is negative: from −2^52 down it writes, and reads, another number.
 * Above, it refuses what is no safe integer by itself.
 */
export const LONG_MIN = -(2 ** 52) + 1;
export const LONG_MAX = 2 ** 53 - 2;

class ExactLong extends avro.types.LongType {
  _write(tap: Tap, value: unknown): void {
    if (!this._check(value)) throw new Error(`${String(value)} is no integer in [${LONG_MIN}, ${LONG_MAX}]`);
    tap.writeLong(value);
  }

  _check(value: unknown, _flags?: unknown, hook?: Hook): value is number {
    const isExact = Number.isInteger(value) && (value as number) >= LONG_MIN && (value as number) <= LONG_MAX;
    if (!isExact) hook?.(value, this);
    return isExact;
  }
}

/** avsc's own check throws a TypeError for a BigInt or a symbol. */
class ExactInt extends avro.types.IntType {
  _write(tap: Tap, value: unknown): void {
    if (!this._check(value)) throw new Error(`${String(value)} is no 32-bit integer`);
    tap.writeInt(value);
  }

  _check(value: unknown, _flags?: unknown, hook?: Hook): value is number {
    const isExact = typeof value === 'number' && value === (value | 0);
    if (!isExact) hook?.(value, this);
    return isExact;
  }
}

/** avsc looks symbols up in an object, which has `toString` and others too: it writes them as the first symbol. */
class OwnSymbols extends avro.types.EnumType {
  _write(tap: Tap, value: unknown): void {
    if (!this._check(value)) throw new Error(`${String(value)} is no symbol of ${this.name}`);
    tap.writeLong(this.symbols.indexOf(value));
  }

  _check(value: unknown, _flags?: unknown, hook?: Hook): value is string {
    const isOne = typeof value === 'string' && this.symbols.includes(value);
    if (!isOne) hook?.(value, this);
    return isOne;
  }
}

const TEXT = new Text();
const EXACT_INT = new ExactInt();
const BYTES_VIEW = new BytesView();
const EXACT_LONG = new ExactLong();

/** Longer schemas are refused: compiling costs time and memory that follow the text. */
const SCHEMA_LENGTH_MAX = 256 * 1024;

/**
 * The avsc type of a schema's JSON text. Logical types are read as what underlies them (a timestamp is a number of ms).
 * @throws Error where the text is no Avro schema.
 */
export function parseType(schema: string): avro.Type {
  if (schema.length > SCHEMA_LENGTH_MAX) {
    throw new Error(`the schema has ${schema.length} characters; at most ${SCHEMA_LENGTH_MAX} are read`);
  }
  return avro.Type.forSchema(JSON.parse(schema) as avro.Schema, {
    omitRecordMethods: true,
    typeHook: ownType,
  });
}

function ownType(
  schema: avro.Schema,
  options: ConstructorParameters<typeof avro.types.MapType>[1],
): avro.Type | undefined {
  const name = typeof schema === 'object' && schema !== null && 'type' in schema ? schema.type : schema;
  if (name === 'string') return TEXT;
  if (name === 'map')
    return new TextMap(schema as ConstructorParameters<typeof avro.types.MapType>[0], options);
  if (name === 'enum')
    return new OwnSymbols(schema as ConstructorParameters<typeof avro.types.EnumType>[0], options);
  if (name === 'bytes') return BYTES_VIEW;
  if (name === 'int') return EXACT_INT;
  return name === 'long' ? EXACT_LONG : undefined;
}
