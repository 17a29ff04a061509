import { createHash } from 'node:crypto';
import { ERROR_CODES, type ErrorCode } from '../core/errors.ts';
import type { Headers, InboundRecord, OutboundRecord } from '../ports/message-bus.ts';

/** Whether `<topic>.dlq` keeps a record's bytes or only their digest. */
export type DeadLetterPayload = 'full' | 'hash';

export interface DeadLetterInput {
  record: InboundRecord;
  /** The dead-letter topic, and its partition. */
  topic: string;
  partition: number;
  /** The stage that gave up on it. */
  stage: string;
  code: ErrorCode;
  message: string;
  payload: DeadLetterPayload;
}

/** Kafka Connect's error headers (org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter), values as text. */
const PREFIX = '__connect.errors.';
const TOPIC = `${PREFIX}topic`;
const PARTITION = `${PREFIX}partition`;
const OFFSET = `${PREFIX}offset`;
const STAGE = `${PREFIX}stage`;
const CLASS_NAME = `${PREFIX}exception.class.name`;
const MESSAGE = `${PREFIX}exception.message`;
/** Present where the value is a digest; its value names the algorithm. */
const DIGEST = 'millrace.value.digest';
/** Present where the record's batch could not be read: `first-last` of its offsets. The digest is that of the packed batch. */
const BATCH_OFFSETS = 'millrace.batch.offsets';

const CLASS_PREFIX = 'millrace.';
const MESSAGE_BYTES_MAX = 1024;
const KEPT_HEADERS_MAX = 32;
const KEPT_HEADERS_BYTES_MAX = 8 * 1024;

/**
 * A record that could not be read or worked on, for its dead-letter topic: the original key and value (or the value's sha256, or that of its batch
 * where that could not be read), the original
 * headers as far as 32 of 8 KiB in all, and Kafka Connect's error headers. Those replace what an earlier round left behind, so a record that
 * fails again and again does not grow.
 */
export function deadLetterRecord(input: DeadLetterInput): OutboundRecord {
  const { record, topic, partition } = input;
  const { unreadable } = record;
  const hashed = unreadable !== undefined || (input.payload === 'hash' && record.value !== null);
  return {
    topic,
    partition,
    key: record.key,
    value: hashed ? digest(record) : record.value,
    headers: {
      ...originalHeaders(record.headers),
      [TOPIC]: Buffer.from(record.topic),
      [PARTITION]: Buffer.from(String(record.partition)),
      [OFFSET]: Buffer.from(String(record.offset)),
      [STAGE]: Buffer.from(input.stage),
      [CLASS_NAME]: Buffer.from(CLASS_PREFIX + input.code),
      [MESSAGE]: cut(input.message),
      ...(hashed ? { [DIGEST]: Buffer.from('sha256') } : {}),
      ...(unreadable === undefined
        ? {}
        : { [BATCH_OFFSETS]: Buffer.from(`${unreadable.firstOffset}-${unreadable.lastOffset}`) }),
    },
  };
}

function digest({ value, unreadable }: InboundRecord): Buffer {
  const hex =
    unreadable?.digest ??
    createHash('sha256')
      .update(value ?? '')
      .digest('hex');
  return Buffer.from(`sha256:${hex}`);
}

function originalHeaders(headers: Headers): Headers {
  const kept: [string, Buffer][] = [];
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(PREFIX) || name === DIGEST || name === BATCH_OFFSETS) continue;
    bytes += Buffer.byteLength(name) + value.length;
    if (bytes > KEPT_HEADERS_BYTES_MAX || kept.length === KEPT_HEADERS_MAX) break;
    kept.push([name, value]);
  }
  return Object.fromEntries(kept);
}

/** At most 1 KB of UTF-8, cut between characters. */
function cut(message: string): Buffer {
  const bytes = Buffer.from(message);
  if (bytes.length <= MESSAGE_BYTES_MAX) return bytes;
  let end = MESSAGE_BYTES_MAX;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}

/** What a dead letter says about the record that it was. */
export interface DeadLetter {
  /** Where the record lay. */
  topic: string;
  partition: number;
  offset: number;
  stage: string;
  /** One of millrace's codes; undefined where something else wrote the dead letter. */
  code: ErrorCode | undefined;
  exceptionClass: string;
  message: string;
  /** When it was given up, ms since the epoch. */
  deadLetteredAtMs: number;
  key: Buffer | null;
  /** The original bytes, or the text `sha256:<hex>`. */
  value: Buffer | null;
  payload: DeadLetterPayload;
  /** The original headers. */
  headers: Headers;
}

/** Reads a record of a dead-letter topic, whoever wrote it; undefined where it does not say which record it was. */
export function parseDeadLetter(record: InboundRecord): DeadLetter | undefined {
  const text = (name: string): string => record.headers[name]?.toString('utf8') ?? '';
  const topic = text(TOPIC);
  const partition = parseCount(text(PARTITION));
  const offset = parseCount(text(OFFSET));
  if (topic === '' || partition === undefined || offset === undefined) return undefined;
  const exceptionClass = text(CLASS_NAME);
  return {
    topic,
    partition,
    offset,
    stage: text(STAGE),
    code: parseCode(exceptionClass),
    exceptionClass,
    message: text(MESSAGE),
    deadLetteredAtMs: record.timestampMs,
    key: record.key,
    value: record.value,
    payload: record.headers[DIGEST] === undefined ? 'full' : 'hash',
    headers: originalHeaders(record.headers),
  };
}

function parseCount(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function parseCode(exceptionClass: string): ErrorCode | undefined {
  const code = exceptionClass.startsWith(CLASS_PREFIX) ? exceptionClass.slice(CLASS_PREFIX.length) : '';
  return Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : undefined;
}

/**
 * The record to produce again on the topic that it came from; undefined where only its digest was kept. It becomes a request of its own,
 * with a new identity.
 */
export function replayedRecord(deadLetter: DeadLetter, partition: number): OutboundRecord | undefined {
  if (deadLetter.payload === 'hash') return undefined;
  const { topic, key, value, headers } = deadLetter;
  return { topic, partition, key, value, headers };
}
