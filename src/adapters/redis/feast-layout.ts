import { Buffer } from 'node:buffer';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { StoredFeature } from '../../core/features/feature-row.ts';
import { murmur3 } from '../../core/rollout/murmur3.ts';
import type { EntityId } from '../../ports/feature-source.ts';

/**
 * How Feast 0.67 lays features out in Redis: one hash per entity. Its key is the entity's key (serialisation 3) and the project's name; its fields are
 * hashes of `<view>:<feature>`, and `_ts:<view>`. Sources: feast/infra/key_encoding_utils.py, feast/infra/online_stores/{redis,helpers}.py,
 * protos/feast/types/Value.proto, https://github.com/feast-dev/feast (Apache-2.0).
 */

/** `ValueType.Enum` of Value.proto. */
const STRING = 2;
const INT64 = 4;

/** The key of one entity: the names of its join keys, here one, and then their values, each with its type and length. */
export function entityKey(joinKey: string, id: EntityId, project: string): Buffer {
  const name = Buffer.from(joinKey);
  const value = typeof id === 'bigint' ? int64(id) : Buffer.from(id);
  return Buffer.concat([
    uint32(1),
    uint32(STRING),
    uint32(name.length),
    name,
    uint32(typeof id === 'bigint' ? INT64 : STRING),
    uint32(value.length),
    value,
    Buffer.from(project),
  ]);
}

/** The field of a feature: murmur3_32 of its name, 4 bytes, little-endian. */
export function featureField(view: string, feature: string): Buffer {
  return uint32(murmur3(Buffer.from(`${view}:${feature}`)));
}

export function eventField(view: string): string {
  return `_ts:${view}`;
}

/** No feature that goes into a row is as long as this: whoever wrote it meant something else. */
const VALUE_BYTES_MAX = 65_536;

/** Numbers of `feast.types.Value`, by field: how each is read, and whether it is a list (a message with one repeated field). */
const NUMBERS: Readonly<
  Record<number, { wire: WireType; read(reader: BinaryReader): number; list: boolean }>
> = (() => {
  const int32 = { wire: WireType.Varint, read: (reader: BinaryReader) => reader.int32() };
  const int64 = { wire: WireType.Varint, read: (reader: BinaryReader) => Number(reader.int64()) };
  const double = { wire: WireType.Bit64, read: (reader: BinaryReader) => reader.double() };
  const float = { wire: WireType.Bit32, read: (reader: BinaryReader) => reader.float() };
  const bool = { wire: WireType.Varint, read: (reader: BinaryReader) => Number(reader.bool()) };
  const scalars = [int32, int64, double, float, bool];
  return Object.fromEntries([
    ...scalars.map((number, k) => [k + 3, { ...number, list: false }]),
    ...scalars.map((number, k) => [k + 13, { ...number, list: true }]),
  ]);
})();
const NULL_FIELD = 19;

/** Reads a `feast.types.Value`; an empty one, as Feast writes a null, is none. */
export function readValue(bytes: Uint8Array): StoredFeature {
  if (bytes.length > VALUE_BYTES_MAX) return 'no-number';
  try {
    const reader = new BinaryReader(bytes);
    let value: StoredFeature = null;
    // Of several members of a oneof the last one holds.
    while (reader.pos < reader.len) value = readMember(reader);
    return value;
  } catch {
    // Cut short, or no protobuf at all: the row says so.
    return 'no-number';
  }
}

function readMember(reader: BinaryReader): StoredFeature {
  const [field, wire] = reader.tag();
  if (field === NULL_FIELD) {
    reader.skip(wire, field);
    return null;
  }
  const number = NUMBERS[field];
  if (number === undefined || wire !== (number.list ? WireType.LengthDelimited : number.wire)) {
    reader.skip(wire, field);
    return 'no-number';
  }
  if (!number.list) return [number.read(reader)];
  return readList(new BinaryReader(reader.bytes()), number);
}

/** Packed, as Feast writes it, or one element after another. */
function readList(
  reader: BinaryReader,
  { wire: elementWire, read }: { wire: WireType; read(reader: BinaryReader): number },
): StoredFeature {
  const values: number[] = [];
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (field === 1 && wire === elementWire) values.push(read(reader));
    else if (field === 1 && wire === WireType.LengthDelimited) {
      const packed = new BinaryReader(reader.bytes());
      while (packed.pos < packed.len) values.push(read(packed));
    } else return 'no-number';
  }
  return values;
}

/** Reads a `google.protobuf.Timestamp`. @returns ms since the epoch; undefined for what is none */
export function readEventMs(bytes: Uint8Array): number | undefined {
  if (bytes.length > VALUE_BYTES_MAX) return undefined;
  try {
    const reader = new BinaryReader(bytes);
    let [seconds, nanos] = [0, 0];
    while (reader.pos < reader.len) {
      const [field, wire] = reader.tag();
      if (field === 1 && wire === WireType.Varint) seconds = Number(reader.int64());
      else if (field === 2 && wire === WireType.Varint) nanos = reader.int32();
      else reader.skip(wire, field);
    }
    return seconds * 1_000 + nanos / 1e6;
  } catch {
    return undefined;
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}
