import type avro from 'avsc';
import { MillraceError, shorten } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Headers } from '../ports/message-bus.ts';
import type { SchemaRegistry } from '../ports/schema-registry.ts';
import { parseType } from './avro-type.ts';
import { type CompiledReader, compileReader } from './compiled-reader.ts';
import { type CompiledWriter, compileWriter } from './compiled-writer.ts';
import { fingerprintOf } from './fingerprint.ts';
import { SCHEMA } from './headers.ts';
import { DECODE_LIMITS, type DecodeLimits } from './limits.ts';
import { compilePayloadBytes } from './payload-bytes.ts';
import type { Records } from './records.ts';
import { SCHEMAS } from './schemas.ts';
import type { RecordName, TopicDefinition } from './topics.ts';
import { type Learned, messageOf, type Reading, type SchemaName, WriterSchemas } from './writer-schemas.ts';

export type UnreadableCode = 'NO_FRAME' | 'EMPTY_VALUE' | 'MALFORMED' | 'TOO_LARGE' | 'UNKNOWN_SCHEMA';

export type Decoded<T> =
  | { readonly status: 'ok'; readonly value: T }
  | { readonly status: 'unreadable'; readonly code: UnreadableCode; readonly message: string }
  /** Await `codecs.learn` with it, then decode again. */
  | ({ readonly status: 'schema-unknown' } & SchemaName);

/** Record values of one kind: `0x00`, the writer schema's registry id as int32 big-endian, the Avro body. */
export interface RecordCodec<T> {
  readonly record: RecordName;
  /** What a record says of its schema besides the id: they belong to every value that `encode` made. */
  readonly headers: Headers;
  /**
   * One new buffer of exactly the frame and the body; `bytes` fields are copied into it once.
   * @throws MillraceError MALFORMED where the value is none of this record, TOO_LARGE beyond the limits, INVALID_CONFIG before `register`.
   */
  encode(value: T): Buffer;
  /**
   * `bytes` fields of the value are views of `bytes`: neither may be written to. Never throws.
   * @param fingerprint of the writer's schema, where the record tells it (`schemaOf` its headers): then the id decides nothing
   */
  decode(bytes: Buffer | null, fingerprint?: string): Decoded<T>;
}

export interface CodecsOptions {
  registry: SchemaRegistry;
  clock: Clock;
  limits?: Partial<DecodeLimits>;
  /** Schemas to write and read with, by record; this version's own unless given (tests stand in for older and newer versions). */
  schemas?: Partial<Readonly<Record<RecordName, string>>>;
}

/** The codecs of every record, over one registry and one cache of writers' schemas. */
export interface Codecs {
  for<N extends RecordName>(record: N): RecordCodec<Records[N]>;
  /**
   * Registers each topic's schema under the subject `<topic>-value`, with its compatibility. A record is written with the id that its
   * first topic got; the registry gives one id to one schema.
   * @throws MillraceError REGISTRY_UNAVAILABLE (try again), INVALID_CONFIG where the registry refuses a schema.
   */
  register(topics: Iterable<readonly [topic: string, definition: TopicDefinition]>): Promise<void>;
  /**
   * Looks a writer's schema up: once, however many ask. "No such schema" is believed for 30 s, and until then such records are unreadable.
   * @throws MillraceError REGISTRY_UNAVAILABLE: the record is not to blame, and must wait.
   */
  learn(schema: SchemaName): Promise<Learned>;
  /** Fingerprint of the schema that a framed value's id stands for; empty where that is not known here. */
  fingerprintIn(bytes: Buffer | null): string;
}

export function createCodecs(options: CodecsOptions): Codecs {
  const limits: DecodeLimits = { ...DECODE_LIMITS, ...options.limits };
  const schemas = { ...SCHEMAS, ...options.schemas };
  const writers = new WriterSchemas(options.registry, options.clock, limits);
  const codecs = new Map<RecordName, AvroCodec<unknown>>();

  const codecOf = (record: RecordName): AvroCodec<unknown> => {
    const known = codecs.get(record);
    if (known !== undefined) return known;
    const bytesMax = limits.bytesMax + (record === 'ScoreRequest' ? 0 : limits.envelopeBytesMax);
    const made = new AvroCodec<unknown>(record, schemas[record], bytesMax, writers, limits);
    codecs.set(record, made);
    return made;
  };

  return {
    for: <N extends RecordName>(record: N) =>
      codecOf(record) as RecordCodec<unknown> as RecordCodec<Records[N]>,
    learn: (schema) => writers.learn(schema),
    fingerprintIn: (bytes) => {
      const isFramed = bytes !== null && bytes.length >= FRAME_BYTES && bytes[0] === 0;
      return (isFramed ? writers.fingerprintOf(bytes.readInt32BE(1)) : undefined) ?? '';
    },
    async register(topics) {
      const registrations = [...topics].map(async ([topic, { record, compatibility }]) => ({
        codec: codecOf(record),
        id: await options.registry.register(`${topic}-value`, schemas[record], compatibility),
      }));
      for (const { codec, id } of await Promise.all(registrations)) codec.adopt(id);
    },
  };
}

const FRAME_BYTES = 5;
const OVERHEAD_BYTES_MIN = 128;

class AvroCodec<T> implements RecordCodec<T> {
  readonly record: RecordName;
  readonly headers: Headers;
  readonly #type: avro.Type;
  readonly #fingerprint: string;
  readonly #bytesMax: number;
  readonly #writers: WriterSchemas;
  readonly #payloadBytes: (value: unknown) => number;
  readonly #read: CompiledReader | undefined;
  readonly #compiledWrite: CompiledWriter | undefined;
  #schemaId: number | undefined;
  #ownReading: Reading | undefined;
  /** What a record took lately besides its `bytes` fields. */
  #overheadBytes = OVERHEAD_BYTES_MIN;

  constructor(
    record: RecordName,
    schema: string,
    bytesMax: number,
    writers: WriterSchemas,
    limits: DecodeLimits,
  ) {
    this.record = record;
    this.#type = parseType(schema);
    this.#fingerprint = fingerprintOf(this.#type);
    this.headers = { [SCHEMA]: Buffer.from(this.#fingerprint) };
    this.#bytesMax = bytesMax;
    this.#writers = writers;
    this.#payloadBytes = compilePayloadBytes(this.#type);
    this.#read = compileReader(this.#type, limits);
    this.#compiledWrite = compileWriter(this.#type);
  }

  adopt(schemaId: number): void {
    this.#schemaId ??= schemaId;
    this.#writers.adopt(schemaId, this.#type);
  }

  encode(value: T): Buffer {
    if (this.#schemaId === undefined) {
      throw new MillraceError('INVALID_CONFIG', `${this.record} has no schema id yet`, {
        advice: 'Await codecs.register() with a topic of this record before encoding it',
      });
    }
    const payloadBytes = this.#payloadBytes(value);
    let buffer = Buffer.allocUnsafe(payloadBytes + this.#overheadBytes);
    let end = this.#write(value, buffer);
    if (end < 0) {
      buffer = Buffer.allocUnsafe(buffer.length - end);
      end = this.#write(value, buffer);
    }
    this.#learnOverhead(end - payloadBytes);
    if (end > this.#bytesMax) throw tooLarge(this.record, end, this.#bytesMax);
    buffer[0] = 0;
    buffer.writeInt32BE(this.#schemaId, 1);
    return buffer.subarray(0, end);
  }

  decode(bytes: Buffer | null, fingerprint?: string): Decoded<T> {
    if (bytes === null || bytes.length === 0) return unreadable('EMPTY_VALUE', 'the record has no value');
    if (bytes.length < FRAME_BYTES || bytes[0] !== 0) return unreadable('NO_FRAME', describeNoFrame(bytes));
    if (bytes.length > this.#bytesMax) {
      return unreadable('TOO_LARGE', `the value has ${bytes.length} bytes (at most ${this.#bytesMax})`);
    }
    const schemaId = bytes.readInt32BE(1);
    if (schemaId < 1) return unreadable('UNKNOWN_SCHEMA', `${schemaId} is no schema id; they start at 1`);
    const reading = this.#readingOf({ schemaId, fingerprint });
    if (reading === 'unknown') return { status: 'schema-unknown', schemaId, fingerprint };
    if (reading === 'no-such-schema') {
      const named = fingerprint === undefined ? '' : ` and the fingerprint ${fingerprint}`;
      return unreadable('UNKNOWN_SCHEMA', `the registry has no schema with the id ${schemaId}${named}`);
    }
    if ('unusable' in reading) {
      return unreadable('UNKNOWN_SCHEMA', `written with the schema id ${schemaId}: ${reading.unusable}`);
    }
    if (reading.resolver === undefined) {
      const value = this.#read?.(bytes, FRAME_BYTES);
      if (value !== undefined) return { status: 'ok', value: value as T };
    }
    const { refusal } = reading.walk(bytes, FRAME_BYTES);
    if (refusal !== undefined) return unreadable(refusal.code, refusal.message);
    try {
      return { status: 'ok', value: this.#type.decode(bytes, FRAME_BYTES, reading.resolver).value };
    } catch (error) {
      return unreadable('MALFORMED', messageOf(error));
    }
  }

  #readingOf(name: SchemaName): ReturnType<WriterSchemas['reading']> {
    if (name.fingerprint !== this.#fingerprint) return this.#writers.reading(name, this.#type);
    this.#ownReading ??= this.#writers.readingOwn(this.#type);
    return this.#ownReading;
  }

  /** The end, or minus the number of bytes that were missing. */
  #write(value: T, buffer: Buffer): number {
    const end = this.#compiledWrite?.(value, buffer, FRAME_BYTES);
    if (end !== undefined) return end <= buffer.length ? end : buffer.length - end;
    try {
      return this.#type.encode(value, buffer, FRAME_BYTES);
    } catch (error) {
      throw invalidValue(this.record, this.#type, value, error);
    }
  }

  /** Follows what records take up at once, and back down slowly, so that few records are written twice and little memory is left over. */
  #learnOverhead(bytes: number): void {
    if (bytes > this.#overheadBytes) this.#overheadBytes = bytes + (bytes >> 3);
    else
      this.#overheadBytes -= (this.#overheadBytes - Math.max(bytes + (bytes >> 3), OVERHEAD_BYTES_MIN)) >> 4;
  }
}

function unreadable<T>(code: UnreadableCode, message: string): Decoded<T> {
  return { status: 'unreadable', code, message };
}

function describeNoFrame(bytes: Buffer): string {
  if (bytes.length < FRAME_BYTES)
    return `the value has ${bytes.length} bytes; its frame alone has ${FRAME_BYTES}`;
  return `the value starts with the byte ${bytes[0]}, not with 0 and a schema id`;
}

function tooLarge(record: RecordName, bytes: number, bytesMax: number): MillraceError {
  return new MillraceError('TOO_LARGE', `${record} is too large`, {
    value: `${bytes} bytes`,
    allowed: `at most ${bytesMax} bytes`,
    advice: 'Send fewer candidates, or ids with item tables in place of inline features',
  });
}

/** avsc quotes the whole value in its message, payloads too; this names the field that is wrong. */
function invalidValue(record: RecordName, type: avro.Type, value: unknown, cause: unknown): MillraceError {
  let place = '';
  let wrong: unknown;
  let expected = '';
  type.isValid(value, {
    errorHook: (path, part, partType) => {
      if (expected !== '') return;
      place = path.length === 0 ? '' : `.${path.join('.')}`;
      wrong = part;
      expected = partType.typeName.startsWith('union')
        ? 'a branch of its union'
        : (partType.name ?? partType.typeName);
    },
  });
  if (expected === '')
    return new MillraceError('MALFORMED', `${record} cannot be encoded: ${shorten(messageOf(cause))}`);
  return new MillraceError('MALFORMED', `${record}${place} is not what its schema says`, {
    value: wrong,
    allowed: expected,
  });
}
