import type { Kafka, Message, Producer, RecordMetadata } from 'kafkajs';
import type { PartitionBatch, SendOutcome } from '../client.ts';
import { STORED } from '../client.ts';
import { PartitionTable } from '../partition-table.ts';
import { errorFromCode, type ProduceResponse } from './internals.ts';
import { responseOf } from './patches.ts';

const METADATA_AGE_MAX_MS = 5_000;
const NOT_ROUTED: SendOutcome = { status: 'delayed', error: new Error('kafkajs does not know the partition yet') };
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);
const INVALID = new Set(['INVALID_RECORD', 'INVALID_TIMESTAMP', 'UNSUPPORTED_FOR_MESSAGE_FORMAT']);

/** One kafkajs producer that attempts once and tells what each partition was answered. */
export class KafkaJsSender {
  readonly #kafka: Kafka;
  readonly #idempotent: boolean;
  readonly #requestTimeoutMs: number;
  #producer: Promise<Producer> | undefined;

  constructor(kafka: Kafka, options: { idempotent: boolean; requestTimeoutMs: number }) {
    this.#kafka = kafka;
    this.#idempotent = options.idempotent;
    this.#requestTimeoutMs = options.requestTimeoutMs;
  }

  async send(batches: readonly PartitionBatch[]): Promise<readonly SendOutcome[]> {
    const producer = await this.#connected();
    try {
      const stored = await producer.sendBatch({ acks: -1, timeout: this.#requestTimeoutMs, topicMessages: toTopicMessages(batches) });
      return outcomesOf(batches, codesOf(stored));
    } catch (error) {
      const response = responseOf<ProduceResponse>(error);
      if (response === undefined) throw error;
      const answers = response.topics.flatMap(({ topicName, partitions }) => partitions.map((each) => ({ topicName, ...each })));
      return outcomesOf(batches, codesOf(answers));
    }
  }

  async reset(): Promise<void> {
    const producer = this.#producer;
    this.#producer = undefined;
    await producer?.then(
      (each) => each.disconnect(),
      () => undefined,
    );
  }

  #connected(): Promise<Producer> {
    this.#producer ??= this.#connect().catch((error: unknown) => {
      this.#producer = undefined;
      throw error;
    });
    return this.#producer;
  }

  async #connect(): Promise<Producer> {
    const producer = this.#kafka.producer({
      // Every record names its partition: a partitioner that chose again on a retry would skip brokers that already acknowledged.
      createPartitioner: () => ({ message }) => message.partition ?? 0,
      metadataMaxAge: METADATA_AGE_MAX_MS,
      allowAutoTopicCreation: false,
      idempotent: this.#idempotent,
      retry: { retries: 0 },
    });
    await producer.connect();
    return producer;
  }
}

function toTopicMessages(batches: readonly PartitionBatch[]): { topic: string; messages: Message[] }[] {
  const topics = new Map<string, Message[]>();
  for (const { topic, records } of batches) {
    const messages = topics.get(topic) ?? [];
    // An outbound record has the shape of a kafkajs message, so none is made.
    for (const record of records) messages.push(record as Message);
    topics.set(topic, messages);
  }
  return Array.from(topics, ([topic, messages]) => ({ topic, messages }));
}

function codesOf(answers: readonly RecordMetadata[]): PartitionTable<number> {
  const codes = new PartitionTable<number>();
  for (const { topicName, partition, errorCode } of answers) codes.set(topicName, partition, errorCode);
  return codes;
}

/** A partition that is not in the answer was not sent: kafkajs leaves out what its metadata lacks, and reports success. */
function outcomesOf(batches: readonly PartitionBatch[], codes: PartitionTable<number>): SendOutcome[] {
  return batches.map(({ topic, partition }) => {
    const code = codes.get(topic, partition);
    if (code === undefined) return NOT_ROUTED;
    return code === 0 ? STORED : outcomeOf(code);
  });
}

function outcomeOf(code: number): SendOutcome {
  const error = errorFromCode(code);
  if (TOO_LARGE.has(error.type ?? '')) return { status: 'too-large', error };
  if (INVALID.has(error.type ?? '')) return { status: 'invalid', error };
  return { status: 'delayed', error };
}
