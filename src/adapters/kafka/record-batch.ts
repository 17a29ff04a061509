import { createHash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import type { Headers, Unreadable } from '../../ports/message-bus.ts';
import { CODECS, type Codec, UnpacksToMuch } from './codecs.ts';

/**
 * Record batches as a broker sends them (Kafka's documentation, "Record Batch"; magic 2). Both clients read them here: what a producer writes
 * must neither take a consumer's memory nor its time nor stop a partition, and neither library has such a bound.
 */

/** What one compressed batch may take in memory once it is unpacked; on the wire it is at most some megabytes. */
export const BATCH_UNPACKED_BYTES_MAX = 32 * 2 ** 20;
/** The same for all batches of one answer. What does not fit is read with a later one. */
const ANSWER_UNPACKED_BYTES_MAX = 2 * BATCH_UNPACKED_BYTES_MAX;
/** What a record and a header take besides their bytes. */
const RECORD_COST_BYTES = 256;
const HEADER_COST_BYTES = 128;
/** Of one record; those beyond are left out, and the record is handled like any other. */
export const HEADERS_MAX = 1_000;

export const IS_TRANSACTIONAL = 16;
export const IS_CONTROL = 32;
const LOG_APPEND_TIME = 8;
const COMPRESSION = 7;

const LENGTH_AT = 8;
const MAGIC_AT = 16;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;
const RECORDS_AT = 61;
const MAGIC = 2;

export interface BatchRecord {
  readonly offsetDelta: number;
  readonly timestampDelta: number | bigint;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Headers;
}

export interface RecordBatch {
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly firstTimestamp: bigint;
  readonly maxTimestamp: bigint;
  readonly producerId: bigint;
  /** None where the batch is refused. */
  readonly records: readonly BatchRecord[];
  readonly refused?: Unreadable | undefined;
}

/** What the batches of one answer may still unpack to. */
export interface UnpackBudget {
  bytes: number;
}

export function unpackBudget(): UnpackBudget {
  return { bytes: ANSWER_UNPACKED_BYTES_MAX };
}

/**
 * The batches of one partition in an answer, without a last one that is cut off and without those that the budget has no room for. A batch that unpacks
 * to more than it may, or that holds no records that can be read, is refused as a whole.
 * @throws Error where the bytes are not what the broker stored, or in a format before Kafka 0.11 or a compression after Kafka 4
 */
export async function readBatches(bytes: Buffer, budget: UnpackBudget): Promise<RecordBatch[]> {
  const batches: RecordBatch[] = [];
  for (let at = 0; at + RECORDS_AT <= bytes.length; ) {
    const length = bytes.readInt32BE(at + LENGTH_AT);
    const end = at + LENGTH_AT + 4 + length;
    const magic = bytes.readInt8(at + MAGIC_AT);
    if (magic !== MAGIC) throw new Error(`records of the format ${magic} cannot be read, only of ${MAGIC}`);
    if (end < at + RECORDS_AT) throw new Error(`a record batch of ${length} bytes`);
    if (end > bytes.length) break;
    const batch = await readBatch(bytes.subarray(at, end), budget);
    if (batch === undefined) break;
    batches.push(batch);
    at = end;
  }
  return batches;
}

/** Undefined where the budget has no room for it now. */
async function readBatch(bytes: Buffer, budget: UnpackBudget): Promise<RecordBatch | undefined> {
  const head = readHead(bytes);
  // Brokers take no such thing from producers, but a later Kafka may have more codecs, and an install may lack one: what is sound is not refused.
  await codecOf(head.attributes & COMPRESSION)?.load?.();
  const packed = bytes.subarray(RECORDS_AT);
  try {
    const records = await readRecords(packed, head, budget);
    return records === undefined ? undefined : { ...head, records };
  } catch (error) {
    if (crc32c(bytes.subarray(ATTRIBUTES_AT)) !== bytes.readUInt32BE(CRC_AT))
      throw new Error('a record batch arrived with another checksum than its own', { cause: error });
    return { ...head, records: [], refused: refusal(head, packed, error) };
  }
}

type BatchHead = Omit<RecordBatch, 'records'> & { readonly count: number };

function readHead(bytes: Buffer): BatchHead {
  return {
    firstOffset: bytes.readBigInt64BE(0),
    attributes: bytes.readInt16BE(ATTRIBUTES_AT),
    lastOffsetDelta: bytes.readInt32BE(23),
    firstTimestamp: bytes.readBigInt64BE(27),
    maxTimestamp: bytes.readBigInt64BE(35),
    producerId: bytes.readBigInt64BE(43),
    count: bytes.readInt32BE(57),
  };
}

function refusal({ firstOffset, lastOffsetDelta }: BatchHead, packed: Buffer, error: unknown): Unreadable {
  const first = Number(firstOffset);
  return {
    code: error instanceof UnpacksToMuch ? 'TOO_LARGE' : 'MALFORMED',
    reason: error instanceof Error ? error.message : String(error),
    firstOffset: first,
    lastOffset: first + lastOffsetDelta,
    digest: createHash('sha256').update(packed).digest('hex'),
  };
}

async function readRecords(
  packed: Buffer,
  { attributes, count }: BatchHead,
  budget: UnpackBudget,
): Promise<readonly BatchRecord[] | undefined> {
  const codec = codecOf(attributes & COMPRESSION);
  if (codec === undefined) return new RecordReader(packed, Number.POSITIVE_INFINITY).read(count);
  if (count < 0) throw new RangeError(`a batch of ${count} records`);
  const recordsCost = count * RECORD_COST_BYTES;
  if (recordsCost >= BATCH_UNPACKED_BYTES_MAX) throw new UnpacksToMuch(BATCH_UNPACKED_BYTES_MAX);
  const room = Math.min(budget.bytes, BATCH_UNPACKED_BYTES_MAX);
  if (room <= recordsCost) return undefined;
  try {
    const unpacked = await codec.decompress(packed, room - recordsCost);
    const left = room - recordsCost - unpacked.length;
    const reader = new RecordReader(unpacked, Math.floor(left / HEADER_COST_BYTES));
    const records = reader.read(count);
    budget.bytes -= recordsCost + unpacked.length + reader.headers * HEADER_COST_BYTES;
    return records;
  } catch (error) {
    // What was tried for nothing took its time, and many such batches fit into one answer.
    budget.bytes -= room;
    // With all of the budget it may have room.
    if (error instanceof UnpacksToMuch && room < BATCH_UNPACKED_BYTES_MAX) return undefined;
    throw error instanceof UnpacksToMuch ? new UnpacksToMuch(BATCH_UNPACKED_BYTES_MAX, error) : error;
  }
}

/** Undefined for what is not packed. @throws Error for a number that is not known here */
function codecOf(compression: number): Codec | undefined {
  const codec = CODECS.get(compression);
  if (compression === 0 || codec !== undefined) return codec;
  const known = [...CODECS.keys()].join(', ');
  throw new Error(`records of the compression ${compression} cannot be read, only of 0, ${known}`);
}

const NO_HEADERS: Headers = Object.freeze({});

/** The records of one batch, in time that grows with their bytes. @throws RangeError where they are not what Kafka's format allows */
class RecordReader {
  readonly #bytes: Buffer;
  readonly #headersMax: number;
  #at = 0;
  headers = 0;

  constructor(bytes: Buffer, headersMax: number) {
    this.#bytes = bytes;
    this.#headersMax = headersMax;
  }

  read(count: number): BatchRecord[] {
    const records: BatchRecord[] = [];
    for (let i = 0; i < count; i++) records.push(this.#record());
    return records;
  }

  #record(): BatchRecord {
    const length = this.#varint();
    const end = this.#at + length;
    if (length < 0 || end > this.#bytes.length) throw outside();
    // Attributes, of which there are none.
    this.#at += 1;
    const timestampDelta = this.#varint();
    const offsetDelta = this.#varint();
    const key = this.#field(end);
    const value = this.#field(end);
    const headers = this.#headers(end);
    if (this.#at > end) throw outside();
    this.#at = end;
    return { offsetDelta, timestampDelta, key, value, headers };
  }

  /** Where a header stands several times the last one counts: retries that append make them grow otherwise. One without a value says nothing. */
  #headers(end: number): Headers {
    const count = this.#varint();
    if (count === 0) return NO_HEADERS;
    if (count < 0) throw outside();
    const headers: Record<string, Buffer> = {};
    for (let i = 0; i < count && i < HEADERS_MAX; i++) {
      if (++this.headers > this.#headersMax) throw new UnpacksToMuch(BATCH_UNPACKED_BYTES_MAX);
      const name = this.#field(end)?.toString('utf8');
      const value = this.#field(end);
      if (name !== undefined && value !== null) setHeader(headers, name, value);
    }
    return headers;
  }

  /** Bytes behind their length; -1 is null. */
  #field(end: number): Buffer | null {
    const length = this.#varint();
    if (length === -1) return null;
    const start = this.#at;
    this.#at += length;
    if (length < 0 || this.#at > end) throw outside();
    return this.#bytes.subarray(start, this.#at);
  }

  /** A zig-zag number of at most ten bytes, seven bits each, the lowest first; exact up to 2^53. */
  #varint(): number {
    let byte = this.#byte();
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1);
    let value = byte & 0x7f;
    let scale = 0x80;
    for (let i = 1; i < 10; i++) {
      byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      scale *= 0x80;
    }
    throw outside();
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw outside();
    return byte;
  }
}

/** `__proto__` is a name like any other. */
function setHeader(headers: Record<string, Buffer>, name: string, value: Buffer): void {
  if (name !== '__proto__') headers[name] = value;
  else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
}

function outside(): RangeError {
  return new RangeError('a record ends outside of its batch');
}

/** With LogAppendTime the broker writes its time into the batch, and leaves the producer's in the records. */
export function timestamps({
  attributes,
  firstTimestamp,
  maxTimestamp,
}: Pick<RecordBatch, 'attributes' | 'firstTimestamp' | 'maxTimestamp'>): (delta: number | bigint) => number {
  if ((attributes & LOG_APPEND_TIME) !== 0) {
    const appended = Number(maxTimestamp);
    return () => appended;
  }
  const first = Number(firstTimestamp);
  return (delta) => first + Number(delta);
}
