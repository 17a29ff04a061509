import { crc32c } from '@node-rs/crc32';

/**
 * Kafka's Produce request (versions 3 to 7, which differ in their answers only) with record batches of format 2, written in one pass into one
 * buffer of the right size. kafkajs writes each number, record, batch and level of the request into a buffer of its own that grows by copying: two
 * thirds of the CPU of a relay. The bytes are the same; see
 * https://kafka.apache.org/documentation/#messageformat and https://kafka.apache.org/protocol.html#The_Messages_Produce
 */
export interface ProduceOptions {
  acks: number;
  timeout: number;
  transactionalId?: string | null;
  /** A number, a string or kafkajs's Long; absent where the producer is not idempotent. */
  producerId?: { toString(): string };
  producerEpoch?: number;
  /** Type of compression, 0 for none. */
  compression?: number;
  topicData: readonly { topic: string; partitions: readonly PartitionData[] }[];
}

type Bytes = Buffer | string | null | undefined;

interface Message {
  key?: Bytes;
  value?: Bytes;
  /** Milliseconds, as kafkajs takes them: text or number. */
  timestamp?: string | number;
  headers?: Record<string, Bytes | Bytes[]>;
}

interface PartitionData {
  partition: number;
  messages: readonly Message[];
  firstSequence?: number;
}

/** Compresses the records of a batch; what kafkajs hands to its codecs is something with a `buffer`. */
export type Compress = (compression: number, records: { buffer: Buffer }) => Promise<Buffer>;

/** Of a request that kafkajs sends: it looks at `buf` and `buffer`, which are the same. */
export interface Encoded {
  readonly buf: Buffer;
  readonly buffer: Buffer;
  /** What `buf` is the end of: the request's header fits before it, so that the body need not be copied behind one. */
  readonly whole: Buffer;
}

/** For the header, which has the client's id in it. */
const HEADROOM_BYTES = 512;

interface BatchPlan {
  partition: PartitionData;
  firstTimestamp: number;
  maxTimestamp: number;
  now: number;
  /** Bytes of each record without its length. */
  bodyBytes: number[];
  recordsBytes: number;
  compressed: Buffer | undefined;
}

const API_KEY = 0;
const MAGIC = 2;
const TRANSACTIONAL = 16;
/** From the batch's length field to its records: what every batch carries besides them. */
const BATCH_HEADER_BYTES = 49;
const BASE_OFFSET_AND_LENGTH_BYTES = 12;
/** The checksum covers the batch from its attributes on. */
const CHECKSUM_AT = 17;
const ATTRIBUTES_AT = 21;
const COMPRESSION_MASK = 7;

export function produceRequest(options: ProduceOptions, apiVersion: number, compress: Compress) {
  return {
    apiKey: API_KEY,
    apiVersion,
    apiName: 'Produce',
    expectResponse: () => options.acks !== 0,
    encode: () => encodeProduce(options, compress),
  };
}

export async function encodeProduce(options: ProduceOptions, compress: Compress): Promise<Encoded> {
  const compression = (options.compression ?? 0) & COMPRESSION_MASK;
  const topics = options.topicData.map(({ topic, partitions }) => ({
    topic: Buffer.from(topic),
    batches: partitions.map(plan),
  }));
  if (compression !== 0) {
    for (const { batches } of topics) {
      for (const batch of batches)
        batch.compressed = await compress(compression, { buffer: recordsOf(batch) });
    }
  }
  const transactionalId = options.transactionalId == null ? null : Buffer.from(options.transactionalId);
  let bytes = 2 + (transactionalId?.length ?? 0) + 2 + 4 + 4;
  for (const { topic, batches } of topics) {
    bytes += 2 + topic.length + 4;
    for (const batch of batches) bytes += 4 + 4 + batchBytes(batch);
  }
  const whole = Buffer.allocUnsafeSlow(HEADROOM_BYTES + bytes);
  const out = whole.subarray(HEADROOM_BYTES);
  let at = writeShortBytes(out, 0, transactionalId);
  at = out.writeInt16BE(options.acks, at);
  at = out.writeInt32BE(options.timeout, at);
  at = out.writeInt32BE(topics.length, at);
  for (const { topic, batches } of topics) {
    at = writeShortBytes(out, at, topic);
    at = out.writeInt32BE(batches.length, at);
    for (const batch of batches) {
      at = out.writeInt32BE(batch.partition.partition, at);
      at = out.writeInt32BE(batchBytes(batch), at);
      at = writeBatch(out, at, batch, options, compression);
    }
  }
  return { buf: out, buffer: out, whole };
}

function plan(partition: PartitionData): BatchPlan {
  const now = Date.now();
  const timestamps = partition.messages.flatMap(({ timestamp }) =>
    timestamp == null ? [] : [Number(timestamp)],
  );
  const firstTimestamp = timestamps.reduce((least, each) => Math.min(least, each), timestamps[0] ?? now);
  const maxTimestamp = timestamps.reduce((most, each) => Math.max(most, each), timestamps[0] ?? now);
  const bodyBytes: number[] = [];
  let recordsBytes = 0;
  for (const [index, message] of partition.messages.entries()) {
    const body = bodyBytesOf(message, index, timestampOf(message, now) - firstTimestamp);
    bodyBytes.push(body);
    recordsBytes += varintBytes(body * 2) + body;
  }
  return { partition, firstTimestamp, maxTimestamp, now, bodyBytes, recordsBytes, compressed: undefined };
}

function batchBytes({ recordsBytes, compressed }: BatchPlan): number {
  return BASE_OFFSET_AND_LENGTH_BYTES + BATCH_HEADER_BYTES + (compressed?.length ?? recordsBytes);
}

function timestampOf({ timestamp }: Message, now: number): number {
  return timestamp ? Number(timestamp) : now;
}

function recordsOf(batch: BatchPlan): Buffer {
  const records = Buffer.allocUnsafe(batch.recordsBytes);
  writeRecords(records, 0, batch);
  return records;
}

function writeBatch(
  out: Buffer,
  start: number,
  batch: BatchPlan,
  options: ProduceOptions,
  compression: number,
): number {
  const { partition, firstTimestamp, maxTimestamp, compressed } = batch;
  const count = partition.messages.length;
  let at = out.writeBigInt64BE(0n, start);
  at = out.writeInt32BE(batchBytes(batch) - BASE_OFFSET_AND_LENGTH_BYTES, at);
  at = out.writeInt32BE(0, at);
  at = out.writeInt8(MAGIC, at);
  at += 4;
  at = out.writeInt16BE(compression | (options.transactionalId ? TRANSACTIONAL : 0), at);
  at = out.writeInt32BE(count - 1, at);
  at = out.writeBigInt64BE(BigInt(firstTimestamp), at);
  at = out.writeBigInt64BE(BigInt(maxTimestamp), at);
  at = out.writeBigInt64BE(BigInt(options.producerId?.toString() ?? -1), at);
  at = out.writeInt16BE(options.producerEpoch ?? 0, at);
  at = out.writeInt32BE(partition.firstSequence ?? 0, at);
  at = out.writeInt32BE(count, at);
  at = compressed === undefined ? writeRecords(out, at, batch) : at + compressed.copy(out, at);
  out.writeUInt32BE(crc32c(out.subarray(start + ATTRIBUTES_AT, at)), start + CHECKSUM_AT);
  return at;
}

function writeRecords(
  out: Buffer,
  at: number,
  { partition, bodyBytes, now, firstTimestamp }: BatchPlan,
): number {
  for (const [index, message] of partition.messages.entries()) {
    at = writeVarint(out, at, (bodyBytes[index] ?? 0) * 2);
    out[at++] = 0;
    at = writeVarlong(out, at, timestampOf(message, now) - firstTimestamp);
    at = writeVarint(out, at, index * 2);
    at = writeBytes(out, at, message.key);
    at = writeBytes(out, at, message.value);
    at = writeHeaders(out, at, message.headers);
  }
  return at;
}

function bodyBytesOf({ key, value, headers }: Message, index: number, timestampDelta: number): number {
  let bytes = 1 + varlongBytes(timestampDelta) + varintBytes(index * 2) + bytesOf(key) + bytesOf(value);
  let count = 0;
  for (const [name, text] of headersOf(headers)) {
    bytes += bytesOf(name) + bytesOf(text);
    count++;
  }
  bytes += varintBytes(count * 2);
  return bytes;
}

function writeHeaders(out: Buffer, at: number, headers: Message['headers']): number {
  const list = headersOf(headers);
  at = writeVarint(out, at, list.length * 2);
  for (const [name, value] of list) at = writeBytes(out, writeBytes(out, at, name), value);
  return at;
}

const NO_HEADERS: readonly (readonly [string, Bytes])[] = [];

function headersOf(headers: Message['headers']): readonly (readonly [string, Bytes])[] {
  if (headers === undefined) return NO_HEADERS;
  return Object.entries(headers).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((each) => [name, each] as const) : [[name, value] as const],
  );
}

/** With its length before it. */
function bytesOf(value: Bytes): number {
  if (value == null) return 1;
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  return varintBytes(length * 2) + length;
}

function writeBytes(out: Buffer, at: number, value: Bytes): number {
  if (value == null) {
    out[at] = 1;
    return at + 1;
  }
  if (typeof value === 'string') {
    at = writeVarint(out, at, Buffer.byteLength(value) * 2);
    return at + out.write(value, at);
  }
  at = writeVarint(out, at, value.length * 2);
  out.set(value, at);
  return at + value.length;
}

/** A nullable string of the older encoding: int16 length. */
function writeShortBytes(out: Buffer, at: number, value: Buffer | null): number {
  at = out.writeInt16BE(value === null ? -1 : value.length, at);
  return value === null ? at : at + value.copy(out, at);
}

/** Of an unsigned number below 2^32: of a zigzag number that is not negative, its double. */
function varintBytes(unsigned: number): number {
  let bytes = 1;
  for (; unsigned >= 0x80; unsigned >>>= 7) bytes++;
  return bytes;
}

function writeVarint(out: Buffer, at: number, unsigned: number): number {
  for (; unsigned >= 0x80; unsigned >>>= 7) out[at++] = (unsigned & 0x7f) | 0x80;
  out[at++] = unsigned;
  return at;
}

function zigzag(value: number): bigint {
  return value < 0 ? BigInt(-value) * 2n - 1n : BigInt(value) * 2n;
}

function varlongBytes(value: number): number {
  if (value >= 0 && value < 2 ** 30) return varintBytes(value * 2);
  let bytes = 1;
  for (let rest = zigzag(value); rest >= 0x80n; rest >>= 7n) bytes++;
  return bytes;
}

function writeVarlong(out: Buffer, at: number, value: number): number {
  if (value >= 0 && value < 2 ** 30) return writeVarint(out, at, value * 2);
  let rest = zigzag(value);
  for (; rest >= 0x80n; rest >>= 7n) out[at++] = Number(rest & 0x7fn) | 0x80;
  out[at++] = Number(rest);
  return at;
}
