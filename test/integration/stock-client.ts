import { readFileSync } from 'node:fs';
import avro from 'avsc';
import { CompressionTypes, Kafka, logLevel, type Message } from 'kafkajs';
import type { RequestIdentity } from '../../src/core/outcome/identity.ts';

/**
 * A producer that knows millrace by its topics and schema files only: kafkajs, Avro, and the registry's REST API. Nothing of the SDK, which
 * would not send most of what a test wants sent.
 */
export interface StockClient {
  /** Registers a schema and answers its id. */
  register(subject: string, schema: unknown): Promise<number>;
  /** Stores the messages one behind the other, and answers where each lies. */
  produce(
    topic: string,
    partition: number,
    messages: readonly Message[],
    compression?: CompressionTypes,
  ): Promise<RequestIdentity[]>;
  close(): Promise<void>;
}

export async function openStockClient(): Promise<StockClient> {
  const registryUrl = process.env['MILLRACE_REGISTRY_URL'] ?? '';
  const kafka = new Kafka({
    clientId: 'stock-client',
    brokers: (process.env['MILLRACE_KAFKA_BROKERS'] ?? '').split(','),
    logLevel: logLevel.NOTHING,
  });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  return {
    async register(subject, schema) {
      const response = await fetch(`${registryUrl}/subjects/${encodeURIComponent(subject)}/versions`, {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
        body: JSON.stringify({ schema: JSON.stringify(schema) }),
      });
      const answer = (await response.json()) as { id?: number };
      if (answer.id === undefined)
        throw new Error(`the registry refused a schema: ${JSON.stringify(answer)}`);
      return answer.id;
    },
    async produce(topic, partition, messages, compression = CompressionTypes.None) {
      const [stored] = await producer.send({
        topic,
        acks: -1,
        compression,
        messages: messages.map((message) => ({ ...message, partition })),
      });
      const first = Number(stored?.baseOffset);
      return messages.map((_, index) => ({ topic, partition, offset: first + index }));
    },
    close: () => producer.disconnect(),
  };
}

/** A schema file, as it is handed to users. */
export function readSchema(name: string): RecordSchema {
  return JSON.parse(readFileSync(`schemas/${name}.avsc`, 'utf8')) as RecordSchema;
}

export interface RecordSchema {
  type: 'record';
  name: string;
  namespace: string;
  fields: { name: string; type: unknown; default?: unknown }[];
}

export type Encode = (value: unknown) => Buffer;

/** Writes records of a schema under its id: `0x00`, the id as int32 big-endian, the Avro body. */
export function encoder(schema: unknown, schemaId: number): Encode {
  const type = avro.Type.forSchema(schema as avro.Schema);
  return (value) => Buffer.concat([frame(schemaId), type.toBuffer(value)]);
}

export function frame(schemaId: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeInt32BE(schemaId, 1);
  return bytes;
}

/** A zig-zag varint, as Avro writes counts, lengths and longs. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value >= 0 ? 2 * value : -2 * value - 1;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

export interface SentTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
  contents: Buffer;
}

export function fp32Tensor(name: string, shape: readonly number[], values: ArrayLike<number>): SentTensor {
  const floats = Float32Array.from(values);
  return { name, datatype: 'FP32', shape, contents: Buffer.from(floats.buffer) };
}

export const CANDIDATES = 3;
const USER_FEATURES = 64;
const ITEM_FEATURES = 32;

export function userTensor(changes: Readonly<Record<number, number>> = {}): SentTensor {
  const values = Array.from({ length: USER_FEATURES }, (_, index) => changes[index] ?? index / 100);
  return fp32Tensor('user', [USER_FEATURES], values);
}

export function itemTensor(
  rows: number = CANDIDATES,
  changes: Readonly<Record<number, number>> = {},
): SentTensor {
  const values = Array.from(
    { length: rows * ITEM_FEATURES },
    (_, index) => changes[index] ?? (index % 7) / 10,
  );
  return fp32Tensor('item', [rows, ITEM_FEATURES], values);
}

export function idsTensor(ids: readonly number[]): SentTensor {
  const longs = BigInt64Array.from(ids, BigInt);
  return { name: 'ids', datatype: 'INT64', shape: [ids.length], contents: Buffer.from(longs.buffer) };
}

/** A request for three candidates that nothing is wrong with, with enough time for a busy machine, but for `changes`. */
export function requestFor(
  requestId: string,
  changes: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    requestId,
    model: 'ranker',
    deadlineMs: 60_000,
    baselineCandidates: CANDIDATES,
    candidateIds: idsTensor([11, 12, 13]),
    requestTensors: [userTensor()],
    candidateTensors: [itemTensor()],
    ...changes,
  };
}
