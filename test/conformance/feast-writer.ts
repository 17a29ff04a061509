import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Redis } from 'ioredis';
import type { FeatureValue, StoredRow } from '../../src/adapters/memory/feature-source.ts';
import { entityKey, eventField, featureField } from '../../src/adapters/redis/feast-layout.ts';

/** Writes rows as Feast does. That the layout is Feast's own is shown elsewhere: by its own bytes, and by itself. */
export async function writeRows(url: string, project: string, rows: readonly StoredRow[]): Promise<void> {
  const redis = new Redis(url);
  for (const { view, joinKey, id, features, eventMs } of rows) {
    const fields: (string | Buffer)[] = [];
    if (eventMs !== undefined) fields.push(eventField(view), timestamp(eventMs));
    for (const [name, value] of Object.entries(features))
      fields.push(featureField(view, name), Buffer.from(feastValue(value)));
    await redis.hset(entityKey(joinKey, id, project), ...fields);
  }
  redis.disconnect();
}

function timestamp(ms: number): Buffer {
  const seconds = Math.floor(ms / 1_000);
  const writer = new BinaryWriter().tag(1, WireType.Varint).int64(seconds);
  return Buffer.from(
    writer
      .tag(2, WireType.Varint)
      .int32(Math.round((ms - seconds * 1_000) * 1e6))
      .finish(),
  );
}

export function feastValue(value: FeatureValue): Uint8Array {
  const writer = new BinaryWriter();
  if (value === null) return writer.finish();
  if (typeof value === 'string') return writer.tag(2, WireType.LengthDelimited).string(value).finish();
  if (typeof value === 'object') {
    const packed = new BinaryWriter();
    for (const element of value) number(packed, element);
    const list = new BinaryWriter();
    if (value.length > 0) list.tag(1, WireType.LengthDelimited).bytes(packed.finish());
    const field = { bigint: 14, number: 15, boolean: 17 }[typeOf(value[0])];
    return writer.tag(field, WireType.LengthDelimited).bytes(list.finish()).finish();
  }
  const [field, wire] = { bigint: [4, 0], number: [5, 1], boolean: [7, 0] }[typeOf(value)] as [
    number,
    WireType,
  ];
  number(writer.tag(field, wire), value);
  return writer.finish();
}

function typeOf(value: number | bigint | boolean | undefined): 'bigint' | 'number' | 'boolean' {
  return typeof value === 'bigint' ? 'bigint' : typeof value === 'boolean' ? 'boolean' : 'number';
}

function number(writer: BinaryWriter, value: number | bigint | boolean): void {
  if (typeof value === 'bigint') writer.int64(value);
  else if (typeof value === 'boolean') writer.bool(value);
  else writer.double(value);
}
