import { crc32c } from '@node-rs/crc32';
import type { Codec } from '../../../../src/adapters/kafka/codecs.ts';

/** Writes record batches as they lie on the wire, sound or not: neither client's library writes what it should not. */

type Text = string | Buffer | null;

export interface WrittenRecord {
  key?: Text;
  value?: Text;
  headers?: readonly (readonly [Text, Text])[];
  /** In place of the number of headers. */
  headerCount?: number;
  offsetDelta?: number;
  timestampDelta?: number;
}

export interface WrittenBatch {
  firstOffset?: number;
  lastOffsetDelta?: number;
  attributes?: number;
  producerId?: bigint;
  firstTimestamp?: bigint;
  maxTimestamp?: bigint;
  /** In place of the number of records. */
  count?: number;
  magic?: number;
  /** With the number that names it in the attributes. */
  codec?: readonly [number, Pick<Codec, 'compress'>];
}

const CODEC_NONE = 0;

/** A zig-zag number, seven bits each, the lowest first. */
export function varint(value: number): number[] {
  let left = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
  const out: number[] = [];
  for (; left >= 0x80n; left >>= 7n) out.push(Number(left & 0x7fn) | 0x80);
  return [...out, Number(left)];
}

function field(text: Text): Buffer {
  if (text === null) return Buffer.from(varint(-1));
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(varint(bytes.length)), bytes]);
}

export function recordBytes(record: WrittenRecord, index = 0): Buffer {
  const { headers = [] } = record;
  const body = Buffer.concat([
    Buffer.from([0, ...varint(record.timestampDelta ?? index), ...varint(record.offsetDelta ?? index)]),
    field(record.key ?? null),
    field(record.value ?? null),
    Buffer.from(varint(record.headerCount ?? headers.length)),
    ...headers.flatMap(([name, value]) => [field(name), field(value)]),
  ]);
  return Buffer.concat([Buffer.from(varint(body.length)), body]);
}

export async function batchBytes(
  records: readonly WrittenRecord[] | Buffer,
  batch: WrittenBatch = {},
): Promise<Buffer> {
  const plain = Buffer.isBuffer(records) ? records : Buffer.concat(records.map(recordBytes));
  const packed = batch.codec === undefined ? plain : await batch.codec[1].compress(plain);
  const count = batch.count ?? (Buffer.isBuffer(records) ? 1 : records.length);
  const out = Buffer.alloc(61 + packed.length);
  packed.copy(out, 61);
  out.writeBigInt64BE(BigInt(batch.firstOffset ?? 0), 0);
  out.writeInt32BE(out.length - 12, 8);
  out.writeInt8(batch.magic ?? 2, 16);
  out.writeInt16BE((batch.attributes ?? 0) | (batch.codec?.[0] ?? CODEC_NONE), 21);
  out.writeInt32BE(batch.lastOffsetDelta ?? count - 1, 23);
  out.writeBigInt64BE(batch.firstTimestamp ?? 1_000n, 27);
  out.writeBigInt64BE(batch.maxTimestamp ?? 5_000n, 35);
  out.writeBigInt64BE(batch.producerId ?? -1n, 43);
  out.writeInt32BE(count, 57);
  out.writeUInt32BE(crc32c(out.subarray(21)), 17);
  return out;
}
