import avro from 'avsc';
import { FORBIDDEN_KEYS } from '../core/own.ts';
import { LONG_MAX, LONG_MIN } from './avro-type.ts';
import type { DecodeLimits } from './limits.ts';

/** Why bytes are not to be decoded: `MALFORMED` cannot be a value of the schema, `TOO_LARGE` costs more than the limits allow. */
export interface Refusal {
  code: 'MALFORMED' | 'TOO_LARGE';
  message: string;
}

export interface Walked {
  /** Absent where the bytes are exactly one value of the schema, within the limits. */
  refusal: Refusal | undefined;
  /** First byte that was not walked. */
  end: number;
  /** Array items and map entries announced by the block counts that were accepted. */
  items: number;
  /** Values visited. */
  steps: number;
}

/** Walks `bytes` from `start` to their end. Allocates nothing that depends on their content. */
export type Walker = (bytes: Uint8Array, start: number) => Walked;

type Limits = Pick<DecodeLimits, 'itemsMax' | 'zeroByteItemsMax' | 'depthMax' | 'stepsMax'>;

/** Where the walk is. One per walk. */
class Cursor {
  readonly bytes: Uint8Array;
  readonly end: number;
  readonly limits: Limits;
  pos: number;
  depth = 0;
  items = 0;
  zeroByteItems = 0;
  steps = 0;
  refusal: Refusal | undefined = undefined;
  /** Field names from the place of the refusal outwards. */
  path: string[] = [];

  constructor(bytes: Uint8Array, start: number, limits: Limits) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.pos = start;
    this.limits = limits;
  }

  malformed(message: string): false {
    this.refusal = { code: 'MALFORMED', message };
    return false;
  }

  tooLarge(message: string): false {
    this.refusal = { code: 'TOO_LARGE', message };
    return false;
  }
}

/** Moves past one value; false after it set the cursor's refusal. */
type Step = (cursor: Cursor) => boolean;

/** One type of the writer's schema. `minBytes` is the least that a value takes; `fixedBytes` what every value takes, where that is one number. */
interface Node {
  step: Step;
  minBytes: number;
  fixedBytes?: number;
}

/**
 * Compiles the walker of a writer's schema. Every length, count and index is checked against the bytes that are left before anything
 * is built from it: five bytes may announce 5·10⁷ nulls (2 s and 750 MB in a decoder that believes them).
 * Strings and bytes are skipped, not read, so the cost follows the number of values, not of bytes.
 */
export function compileWalker(type: avro.Type, limits: Limits): Walker {
  const root = compile(type, new Map());
  return (bytes, start) => {
    const cursor = new Cursor(bytes, start, limits);
    if (root.step(cursor) && cursor.pos !== cursor.end) {
      cursor.malformed(`${cursor.end - cursor.pos} bytes follow the record's end`);
    }
    return { refusal: located(cursor), end: cursor.pos, items: cursor.items, steps: cursor.steps };
  };
}

const PATH_LENGTH_MAX = 120;

function located({ refusal, path, pos }: Cursor): Refusal | undefined {
  if (refusal === undefined) return undefined;
  const place = path.length === 0 ? '' : `${path.reverse().join('.').slice(0, PATH_LENGTH_MAX)}: `;
  return { code: refusal.code, message: `${place}${refusal.message}, at byte ${pos}` };
}

function compile(type: avro.Type, records: Map<avro.Type, Node>): Node {
  if (type instanceof avro.types.RecordType) return records.get(type) ?? recordNode(type, records);
  if (type instanceof avro.types.ArrayType) return arrayNode(compile(type.itemsType, records));
  if (type instanceof avro.types.MapType) return mapNode(compile(type.valuesType, records));
  if (type instanceof avro.types.UnwrappedUnionType || type instanceof avro.types.WrappedUnionType) {
    return unionNode(type.types.map((branch) => compile(branch, records)));
  }
  if (type instanceof avro.types.EnumType) return enumNode(type.symbols.length);
  if (type instanceof avro.types.FixedType) return fixedNode(type.size);
  return scalarNode(type.typeName);
}

function scalarNode(typeName: string): Node {
  switch (typeName) {
    case 'null':
      return fixedNode(0);
    case 'boolean':
      return { step: skipBoolean, minBytes: 1 };
    case 'int':
      return { step: skipInt, minBytes: 1 };
    case 'long':
      return { step: skipLong, minBytes: 1 };
    case 'float':
      return fixedNode(4);
    case 'double':
      return fixedNode(8);
    case 'string':
    case 'bytes':
      return { step: skipLengthPrefixed, minBytes: 1 };
    default:
      throw new Error(`no walker for the type ${typeName}`);
  }
}

function fixedNode(size: number): Node {
  return { step: (cursor) => skip(cursor, size), minBytes: size, fixedBytes: size };
}

function recordNode(type: avro.types.RecordType, records: Map<avro.Type, Node>): Node {
  const names: string[] = [];
  const fields: Node[] = [];
  // known before its fields are, so that a recursive record finds itself
  const node: Node = { step: (cursor) => walkFields(cursor, fields, names), minBytes: 0 };
  records.set(type, node);
  for (const { name, type: fieldType } of type.fields) {
    const field = compile(fieldType, records);
    names.push(name);
    fields.push(field);
    node.minBytes += field.minBytes;
  }
  return node;
}

function walkFields(cursor: Cursor, fields: readonly Node[], names: readonly string[]): boolean {
  if (!enter(cursor)) return false;
  for (let i = 0; i < fields.length; i++) {
    if (fields[i]?.step(cursor) !== true) {
      cursor.path.push(names[i] ?? '');
      return false;
    }
  }
  cursor.depth -= 1;
  return true;
}

function enter(cursor: Cursor): boolean {
  const { depthMax, stepsMax } = cursor.limits;
  if (++cursor.depth > depthMax) return cursor.tooLarge(`nested deeper than ${depthMax}`);
  return ++cursor.steps <= stepsMax || cursor.tooLarge(`more than ${stepsMax} values`);
}

function unionNode(branches: readonly Node[]): Node {
  const minBytes = 1 + Math.min(...branches.map((branch) => branch.minBytes));
  const step: Step = (cursor) => {
    const branch = readIndex(cursor, branches.length, 'branch of a union');
    return branch >= 0 && branches[branch]?.step(cursor) === true;
  };
  return { step, minBytes };
}

function enumNode(symbols: number): Node {
  return { step: (cursor) => readIndex(cursor, symbols, 'symbol of an enum') >= 0, minBytes: 1 };
}

/** An index below `count`, or -1 after a refusal. */
function readIndex(cursor: Cursor, count: number, what: string): number {
  cursor.steps += 1;
  const index = readVarint(cursor);
  if (index >= 0 && index < count) return index;
  cursor.malformed(`no such ${what}: ${index} of ${count}`);
  return -1;
}

function arrayNode(items: Node): Node {
  return { step: (cursor) => walkBlocks(cursor, items), minBytes: 1 };
}

function mapNode(values: Node): Node {
  const entries: Node = {
    step: (cursor) => skipMapKey(cursor) && values.step(cursor),
    get minBytes() {
      return 1 + values.minBytes;
    },
  };
  return arrayNode(entries);
}

/** Blocks of items until an empty one. A negative count is followed by the block's size in bytes, which must be true. */
function walkBlocks(cursor: Cursor, items: Node): boolean {
  if (!enter(cursor)) return false;
  for (;;) {
    const announced = readVarint(cursor);
    if (announced === 0) break;
    const count = Math.abs(announced);
    const size = announced < 0 ? readVarint(cursor) : undefined;
    if (!mayFollow(cursor, count, items)) return false;
    const start = cursor.pos;
    if (!walkItems(cursor, count, items)) return false;
    if (size !== undefined && size !== cursor.pos - start) {
      return cursor.malformed(`a block of ${cursor.pos - start} bytes says that it has ${size}`);
    }
  }
  cursor.depth -= 1;
  return true;
}

/** Whether so many items can lie in what is left of the bytes and of the limits. */
function mayFollow(cursor: Cursor, count: number, { minBytes }: Node): boolean {
  const { itemsMax, zeroByteItemsMax } = cursor.limits;
  const left = cursor.end - cursor.pos;
  // written so that NaN, a varint that could not be read, is refused too
  if (!(count * minBytes <= left))
    return cursor.malformed(`${count} items announced before the last ${left} bytes`);
  if (minBytes === 0) {
    cursor.zeroByteItems += count;
    if (!(cursor.zeroByteItems <= zeroByteItemsMax)) {
      return cursor.tooLarge(`${cursor.zeroByteItems} items of no bytes (at most ${zeroByteItemsMax})`);
    }
  }
  cursor.items += count;
  return cursor.items <= itemsMax || cursor.tooLarge(`${cursor.items} items (at most ${itemsMax})`);
}

function walkItems(cursor: Cursor, count: number, { step, fixedBytes }: Node): boolean {
  if (fixedBytes !== undefined) return skip(cursor, count * fixedBytes);
  for (let i = 0; i < count; i++) if (!step(cursor)) return false;
  return true;
}

const FORBIDDEN_KEY_BYTES = [...FORBIDDEN_KEYS].map((name) => Buffer.from(name));

function skipMapKey(cursor: Cursor): boolean {
  const length = readVarint(cursor);
  const start = cursor.pos;
  if (!skip(cursor, length)) return false;
  for (const name of FORBIDDEN_KEY_BYTES) {
    if (name.length === length && liesAt(cursor.bytes, start, name)) {
      return cursor.malformed(`the map key ${name} is not allowed`);
    }
  }
  return true;
}

function liesAt(bytes: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false;
  return true;
}

function skipLengthPrefixed(cursor: Cursor): boolean {
  return skip(cursor, readVarint(cursor));
}

/** Moves on by `length` bytes; NaN and negative lengths are refused. */
function skip(cursor: Cursor, length: number): boolean {
  cursor.steps += 1;
  const left = cursor.end - cursor.pos;
  if (length >= 0 && length <= left) {
    cursor.pos += length;
    return true;
  }
  return cursor.malformed(`${length} bytes announced before the last ${left}`);
}

function skipBoolean(cursor: Cursor): boolean {
  cursor.steps += 1;
  const byte = cursor.bytes[cursor.pos++];
  return byte === 0 || byte === 1 || cursor.malformed(`a boolean is 0 or 1, not ${byte}`);
}

function skipInt(cursor: Cursor): boolean {
  cursor.steps += 1;
  const value = readVarint(cursor);
  return (value >= -0x80000000 && value <= 0x7fffffff) || cursor.malformed(`${value} is no 32-bit integer`);
}

function skipLong(cursor: Cursor): boolean {
  cursor.steps += 1;
  const value = readVarint(cursor);
  return (value >= LONG_MIN && value <= LONG_MAX) || cursor.malformed(`${value} is no long of at most 2^52`);
}

const VARINT_BYTES_MAX = 10;

/** A zig-zag varint: exact within ±2^52, beyond that near enough to be refused; NaN where it is cut short or longer than a long can be. */
function readVarint(cursor: Cursor): number {
  const { bytes } = cursor;
  const first = bytes[cursor.pos];
  if (first === undefined) return Number.NaN;
  cursor.pos += 1;
  if (first < 0x80) return (first >>> 1) ^ -(first & 1);
  return readLongVarint(cursor, first & 0x7f);
}

function readLongVarint(cursor: Cursor, low: number): number {
  const negative = low % 2 === 1;
  let value = low;
  let scale = 128;
  for (let i = 1; i < VARINT_BYTES_MAX; i++) {
    const byte = cursor.bytes[cursor.pos++];
    if (byte === undefined) return Number.NaN;
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte < 0x80) return negative ? -(value + 1) / 2 : value / 2;
  }
  return Number.NaN;
}
