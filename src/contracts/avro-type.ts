import avro from 'avsc';

/** The part of avsc's cursor that a type of our own needs. */
interface Tap {
  readonly buf: Buffer;
  pos: number;
  readLong(): number;
  writeLong(value: number): void;
}

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

  _check(
    value: unknown,
    _flags?: unknown,
    hook?: (value: unknown, type: avro.Type) => void,
  ): value is number {
    const isExact = Number.isInteger(value) && (value as number) >= LONG_MIN && (value as number) <= LONG_MAX;
    if (!isExact) hook?.(value, this);
    return isExact;
  }
}

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
    typeHook: (part) => ownType(part),
  });
}

function ownType(schema: unknown): avro.Type | undefined {
  const name = typeof schema === 'object' && schema !== null && 'type' in schema ? schema.type : schema;
  if (name === 'bytes') return BYTES_VIEW;
  return name === 'long' ? EXACT_LONG : undefined;
}
